// Monotonic alignment search (MAS): assigns each frame to a token, in order and with at least one frame per token, such
// that the path score is maximal. Runs on the device that holds the scores, so that a training step never waits for the
// CPU. The caller owns all memory; any thread.
#pragma once

#include "device/device.h"

#include <cstdint>

namespace myxtts {

struct AlignmentProblem {
  int64_t rows = 0, tokens = 0, frames = 0;
  const float* scores = nullptr;          // [rows, frames, tokens]
  const int32_t* text_lengths = nullptr;  // [rows]; at most the mel length; 0 for an empty row
  const int32_t* mel_lengths = nullptr;   // [rows]
  int32_t* token_of_frame = nullptr;      // result [rows, frames]; -1 in padding
  int32_t* durations = nullptr;           // result [rows, tokens]: frames per token; 0 in padding
};

// If two paths tie, both devices take the one that stays on its token longer. Non-finite scores give an arbitrary valid
// path.
void align_on_cpu(const AlignmentProblem& problem, int64_t row);

// Bytes of device scratch memory that align_on_gpu needs.
size_t alignment_scratch_bytes(const AlignmentProblem& problem);
// Aligns all rows. May be captured in a CUDA graph.
void align_on_gpu(const AlignmentProblem& problem, void* scratch, StreamHandle stream);

}  // namespace myxtts
