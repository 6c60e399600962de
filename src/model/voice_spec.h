// Architecture of a voice, and the options of synthesis. Plain values.
#pragma once

#include "model/size.h"

#include <cstdint>

namespace myxtts {

struct VoiceSpec {
  ModelSize size;
  int64_t vocabulary = 0;  // tokens, including padding and blank
  int64_t n_mels = 0;
  double mel_mean = 0, mel_std = 1;  // of the corpus; the model normalises frames with them
  bool convolutions = true;          // false: the voices of version 0.1, of attention alone
  // Sizes of the tables; 0: a voice of one speaker in one language, without conditions.
  int64_t speakers = 0, languages = 0;

  bool conditioned() const { return speakers > 0; }
};

// How the flow ODE is solved: euler takes one function evaluation per interval of time, midpoint two.
enum class FlowSolver { euler, midpoint };

// Sampling options of one synthesis.
struct SynthesisOptions {
  int64_t steps = 4;  // function evaluations; an odd one is left out by midpoint
  FlowSolver solver = FlowSolver::midpoint;
  double sway = 0;  // -1 to 1: negative puts more evaluations at the flow's noisy beginning (sway sampling of F5-TTS)
  double temperature = 0.333;  // scale of the initial noise
  double speed = 1;            // divides the durations
  double guidance = 0;         // how far to go beyond the condition, away from a voice without one (classifier-free)
  uint64_t seed = 1;
};

}  // namespace myxtts
