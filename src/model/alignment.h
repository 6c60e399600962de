// Monotonic alignment: which token each frame belongs to, such that tokens come in order, each has at least one frame,
// and the sum of the scores along the way is the largest. Found by dynamic programming on the device where the scores
// are, so that a training step never waits for the CPU.
#pragma once

#include "device/device.h"

#include <cstdint>

namespace myxtts {

struct AlignmentProblem {
  int64_t rows = 0, tokens = 0, frames = 0;
  const float* scores = nullptr;          // [rows, frames, tokens]
  const int32_t* text_lengths = nullptr;  // [rows]; at most the mel length. 0: an empty row
  const int32_t* mel_lengths = nullptr;   // [rows]
  int32_t* token_of_frame = nullptr;      // result [rows, frames]; -1 behind the end
  int32_t* durations = nullptr;           // result [rows, tokens]: frames of each token; 0 behind the end
};

// Where two ways are equal, the one that stays with its token longer is taken: the same on both devices. Scores that
// are not finite give some way, with durations that add up to its frames.
void align_on_cpu(const AlignmentProblem& problem, int64_t row);

// Bytes of device memory that align_on_gpu needs beside the problem's.
size_t alignment_scratch_bytes(const AlignmentProblem& problem);
// All rows. May be captured.
void align_on_gpu(const AlignmentProblem& problem, void* scratch, StreamHandle stream);

}  // namespace myxtts
