// Work on a GPU that is recorded once and replayed: one call instead of a thousand, and no gaps between kernels.
#pragma once

#include "device/device.h"

#include <functional>
#include <memory>

namespace myxtts {

// Makes a stream of its own the one that this thread gives its work to, as long as it lives: what is to be recorded
// must not run on the default stream.
class OwnStream {
 public:
  virtual ~OwnStream() = default;
  virtual StreamHandle handle() const = 0;
};
std::unique_ptr<OwnStream> use_own_stream(int device);

class Recording {
 public:
  virtual ~Recording() = default;
  virtual void replay() = 0;
};

// Recordings of one recorder share their memory: they are replayed one after another, on the stream that they were
// recorded on, and what is to last lies outside.
class Recorder {
 public:
  virtual ~Recorder() = default;
  virtual std::unique_ptr<Recording> record(const std::function<void()>& work) = 0;
};
std::unique_ptr<Recorder> make_recorder(int device);

}  // namespace myxtts
