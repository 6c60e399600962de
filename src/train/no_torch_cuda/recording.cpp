#include "train/recording.h"

#include "base/error.h"

namespace myxtts {

std::unique_ptr<OwnStream> use_own_stream(int /*device*/) {
  reject_input("device", "this build's libtorch has no CUDA; give --device cpu, or build with a libtorch that has it");
}
std::unique_ptr<Recorder> make_recorder(int /*device*/) { fail("device", "this build's libtorch has no CUDA"); }

}  // namespace myxtts
