// A voice that speaks mels: on the CPU as it is; on a GPU captured once per length, so that a sentence is two launches
// with one wait between them.
#pragma once

#include "model/capture.h"
#include "model/voice.h"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

namespace myxtts {

// Borrows voice and weights. Any number of threads; on a GPU they take turns.
class VoiceRunner {
 public:
  VoiceRunner(const Voice& voice, const Weights& weights);
  // `capturer` null: nothing is captured.
  VoiceRunner(const Voice& voice, const Weights& weights, std::unique_ptr<GraphCapturer> capturer);

  SynthesizedMel synthesize(const std::vector<int64_t>& tokens, const SynthesisOptions& options,
                            const SpeakingAs& speaker) const;
  // Captures what texts of up to so many tokens and frames need, so that nobody waits for it later.
  void warm_up(int64_t tokens, int64_t frames, const SynthesisOptions& options) const;
  // As many as there is room for, so that requests of ever new kinds neither fill the memory nor drive out what others
  // need; the rest is spoken uncaptured.
  static constexpr int64_t most_captures = 96;
  int64_t captures() const { return static_cast<int64_t>(texts_.size() + frames_.size()); }

 private:
  // Inputs and results of a replay lie outside of the graphs' common memory. What the host writes and reads is pinned.
  struct TextGraph {
    at::Tensor tokens, numbers, vector, log_durations;  // on the host; numbers: length, language
    EncodedText encoded;                                // on the device
    std::unique_ptr<CapturedGraph> graph;
  };
  struct FramesGraph {
    at::Tensor noise, length, guidance, mel;  // on the host
    at::Tensor frame_mu, condition;           // on the device
    std::unique_ptr<CapturedGraph> graph;
  };
  using TextKey = std::pair<int64_t, bool>;                                  // tokens, guided
  using FramesKey = std::tuple<int64_t, int64_t, FlowSolver, double, bool>;  // frames, captured options, guided

  at::TensorOptions on_host(at::ScalarType type) const;
  at::TensorOptions on_device(at::ScalarType type) const;
  bool guided(const SynthesisOptions& options) const { return voice_.spec().conditioned() && options.guidance != 0; }
  // Null if there is no room for another one.
  const TextGraph* text_graph(int64_t tokens, bool guided) const;
  const FramesGraph* frames_graph(int64_t frames, const SynthesisOptions& options) const;
  TextGraph capture_text(int64_t tokens, bool guided) const;
  FramesGraph capture_frames(int64_t frames, const SynthesisOptions& options) const;
  void encode(const TextGraph& text, const std::vector<int64_t>& tokens, const SpeakingAs& speaker) const;
  void speak(const FramesGraph& frames, const TextGraph& text, const std::vector<int64_t>& durations,
             const SynthesisOptions& options) const;

  const Voice& voice_;
  const Weights& weights_;
  std::unique_ptr<GraphCapturer> capturer_;
  mutable std::mutex turn_;  // guards the next two
  mutable std::map<TextKey, TextGraph> texts_;
  mutable std::map<FramesKey, FramesGraph> frames_;
};

}  // namespace myxtts
