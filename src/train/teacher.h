// A voice's own mels of the clips of a corpus, teacher-forced: spoken in the recording's time, so that a vocoder can be
// trained to make the recording of them.
#pragma once

#include "corpus/corpus.h"
#include "settings/config.h"
#include "synth/voice_description.h"

#include <cstdint>
#include <filesystem>

#include <ATen/core/Tensor.h>

namespace myxtts {

struct TeacherMels {
  at::Tensor frames;  // float [frames of all clips, n_mels], on the device
  at::Tensor first;   // int64 [clips]: where a clip's frames begin; -1: there are none
};

// `corpus` is numbered, and its texts are tokens, as the voice says.
TeacherMels teacher_mels(const std::filesystem::path& checkpoint, const Corpus& corpus, const DataConfig& data,
                         at::Device device, uint64_t seed);

// Mels [rows, frames, n_mels] of crops, int [rows, 2]: a clip and its first frame. `own` where there are none.
at::Tensor crops_of(const TeacherMels& teacher, const at::Tensor& crops, const at::Tensor& own);

}  // namespace myxtts
