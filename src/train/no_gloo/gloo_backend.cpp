#include "base/error.h"
#include "train/rank_backend.h"

namespace myxtts {

c10::intrusive_ptr<c10d::Backend> make_host_backend(const c10::intrusive_ptr<c10d::Store>&, const RankPlace& place,
                                                    std::chrono::milliseconds) {
  reject_input("ranks", "{} ranks cannot train: this libtorch was built without Gloo", place.count,
               way_out("build with the libtorch of `pip install torch`, or unset WORLD_SIZE"));
}

}  // namespace myxtts
