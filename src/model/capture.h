// GPU work that is captured once as a CUDA graph and replayed: one launch instead of a thousand, no gaps between
// kernels.
#pragma once

#include "device/device.h"

#include <functional>
#include <memory>

namespace myxtts {

// Makes a stream of its own the current one of this thread while it lives: the default stream cannot be captured.
class OwnStream {
 public:
  virtual ~OwnStream() = default;
  virtual StreamHandle handle() const = 0;
  virtual void synchronize() const = 0;
};
std::unique_ptr<OwnStream> use_own_stream(int device);

class CapturedGraph {
 public:
  virtual ~CapturedGraph() = default;
  virtual void replay() = 0;
};

// Graphs of one capturer share a memory pool: they are replayed one after another, on the stream that they were
// captured on, and what must outlive a replay lies outside.
class GraphCapturer {
 public:
  virtual ~GraphCapturer() = default;
  virtual std::unique_ptr<CapturedGraph> capture(const std::function<void()>& work) = 0;
};
std::unique_ptr<GraphCapturer> make_graph_capturer(int device);

}  // namespace myxtts
