// How different two sounds are to an ear, after the ideas of PESQ (ITU-T P.862): loudness in critical bands, a dead
// zone around what is the same, and what was added weighs more than what is missing. Not PESQ itself: there is no
// alignment in time and no scale of opinions. For comparing vocoders with the same recordings. Any thread.
#pragma once

#include "model/spectrum.h"

namespace myxtts {

struct LoudnessTables {
  SpectrumTables spectrum;
  at::Tensor bands;  // [bins, critical bands]
};
LoudnessTables make_loudness_tables(int sample_rate, at::Device device);

// Of waveforms [rows, samples], per row: 0 where they are the same, about 1 where they have little in common.
at::Tensor loudness_distance(const LoudnessTables& tables, const at::Tensor& made, const at::Tensor& real);

}  // namespace myxtts
