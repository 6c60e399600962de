// A vocoder that speaks: on the CPU as it is; on a GPU captured once per length, so that a waveform is one launch.
#pragma once

#include "features/mel_spec.h"
#include "model/capture.h"
#include "model/vocoder.h"

#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace myxtts {

// Any number of threads; on a GPU they take turns.
class VocoderRunner {
 public:
  // `flat` are its weights, float on the CPU.
  VocoderRunner(const VocoderSpec& spec, const MelSpec& mel, const at::Tensor& flat, at::Device device);

  const Vocoder& vocoder() const { return vocoder_; }
  // `mel` is float [frames, n_mels] on the CPU.
  std::vector<float> waveform(const at::Tensor& mel) const;
  // Captures what mels of up to so many frames need; nothing on a CPU.
  void warm_up(int64_t frames) const;
  size_t captures() const { return captured_.size(); }

 private:
  struct Captured {
    at::Tensor mel, lengths;            // on the GPU
    at::Tensor host_mel, host_lengths;  // pinned
    at::Tensor samples;                 // pinned
    std::unique_ptr<CapturedGraph> graph;
  };
  Captured& captured(int64_t frames) const;

  MelSpec mel_;
  Vocoder vocoder_;
  Weights weights_;
  SpectrumTables tables_;
  std::unique_ptr<GraphCapturer> capturer_;  // on a GPU
  mutable std::mutex turn_;
  mutable std::map<int64_t, Captured> captured_;  // by frames
};

}  // namespace myxtts
