#include "session/vocode.h"

#include "base/error.h"

namespace myxtts {

std::vector<float> vocode(const std::filesystem::path& vocoder, const MelSpec&, const Mel&) {
  reject_input("mel", "{} needs libtorch, which this program was built without", vocoder.string(),
               way_out("leave --vocoder out"));
}

}  // namespace myxtts
