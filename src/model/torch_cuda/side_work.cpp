#include "model/side_work.h"

#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

namespace myxtts {
namespace {

struct Piece {
  std::function<void()> work;
  at::cuda::CUDAEvent done;
};

struct Side {
  c10::cuda::CUDAStream stream;
  std::deque<Piece> pieces;
};

std::mutex mutex;

Side& side_of(int device) {
  static std::map<int, Side> sides;
  const auto found = sides.find(device);
  if (found != sides.end()) return found->second;
  const auto index = static_cast<c10::DeviceIndex>(device);
  return sides.emplace(device, Side{c10::cuda::getStreamFromPool(/*isHighPriority=*/false, index), {}}).first->second;
}

}  // namespace

void run_beside(int device, std::function<void()> work) {
  if (device < 0) return work();
  const std::lock_guard lock(mutex);
  Side& side = side_of(device);
  const c10::cuda::CUDAGuard on_device(static_cast<c10::DeviceIndex>(device));
  at::cuda::CUDAEvent ready;
  ready.record(c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(device)));
  ready.block(side.stream);
  Piece& piece = side.pieces.emplace_back(Piece{std::move(work), {}});
  const c10::cuda::CUDAStreamGuard guard(side.stream);
  piece.work();
  piece.done.record(side.stream);
}

void join_beside(int device, size_t left) {
  if (device < 0) return;
  const std::lock_guard lock(mutex);
  Side& side = side_of(device);
  while (side.pieces.size() > left) {
    side.pieces.front().done.block(c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(device)));
    side.pieces.pop_front();
  }
}

}  // namespace myxtts
