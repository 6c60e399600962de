#include "synth/voice_runner.h"

#include "device/device.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

namespace myxtts {
namespace {

VoiceSpec spec(int64_t speakers) {
  VoiceSpec spec;
  spec.size = model_size("tiny");
  spec.vocabulary = 30, spec.n_mels = 20, spec.mel_mean = -5, spec.mel_std = 2;
  spec.speakers = speakers, spec.languages = speakers > 0 ? 2 : 0;
  return spec;
}

// Weights with which every part of the voice is heard: some begin as zeros.
Weights random_weights(const Voice& voice, at::Device device) {
  const at::Tensor flat = voice.layout().initial(3);
  const at::Tensor noise = at::randn(flat.sizes(), at::make_generator<at::CPUGeneratorImpl>(5)) * 0.02;
  return make_weights(voice.layout(), (flat + noise).to(device), false);
}

// Replays by doing the work again, as a GPU would from its graph.
class Again : public GraphCapturer {
 public:
  explicit Again(int& captures) : captures_(captures) {}
  std::unique_ptr<CapturedGraph> capture(const std::function<void()>& work) override {
    struct Graph : CapturedGraph {
      std::function<void()> work;
      void replay() override { work(); }
    };
    ++captures_;
    auto graph = std::make_unique<Graph>();
    graph->work = work;
    return graph;
  }

 private:
  int& captures_;
};

std::vector<int64_t> some_tokens(int64_t count) {
  std::vector<int64_t> tokens;
  for (int64_t i = 0; i < count; ++i) tokens.push_back(1 + (i * 7) % 29);
  return tokens;
}

TEST(VoiceRunner, captured_by_length_it_speaks_as_the_voice_does) {
  for (const int64_t speakers : {0, 3}) {
    const Voice voice(spec(speakers));
    const Weights weights = random_weights(voice, at::kCPU);
    int captures = 0;
    const VoiceRunner runner(voice, weights, std::make_unique<Again>(captures));
    SpeakingAs as;
    if (speakers > 0) as = {voice.speaker_vector(weights, 1), 1};
    for (const int64_t count : {3, 64, 65, 3}) {
      for (const double guidance : {0.0, 0.7}) {
        SynthesisOptions options;
        options.guidance = guidance, options.temperature = 0.5, options.seed = 9, options.speed = 0.8;
        const SynthesizedMel wanted = voice.synthesize(weights, some_tokens(count), options, as),
                             made = runner.synthesize(some_tokens(count), options, as);
        EXPECT_EQ(made.durations, wanted.durations);
        ASSERT_EQ(made.mel.sizes(), wanted.mel.sizes());
        EXPECT_LT((made.mel - wanted.mel).abs().max().item<float>(), 1e-4F)
            << count << " tokens, guidance " << guidance;
      }
    }
    EXPECT_EQ(runner.captures(), captures);
  }
}

TEST(VoiceRunner, captures_a_length_once_whatever_its_guidance_and_keeps_what_it_has) {
  const Voice voice(spec(0));
  const Weights weights = random_weights(voice, at::kCPU);
  int captures = 0;
  const VoiceRunner runner(voice, weights, std::make_unique<Again>(captures));
  SynthesisOptions options;
  options.steps = 1, options.solver = FlowSolver::euler;
  runner.warm_up(100, 200, options);
  EXPECT_EQ(captures, 2 + 3);
  const at::Tensor mel = runner.synthesize(some_tokens(10), options, {}).mel;
  const int before = captures;
  EXPECT_TRUE(runner.synthesize(some_tokens(10), options, {}).mel.equal(mel));
  EXPECT_EQ(captures, before);
  for (int i = 1; i < 150; ++i) {
    options.sway = -i / 1000.0;
    EXPECT_GT(runner.synthesize(some_tokens(2), options, {}).mel.size(0), 0)
        << "what finds no room is spoken all the same";
  }
  EXPECT_EQ(captures, VoiceRunner::most_captures);
  options.sway = 0;
  EXPECT_TRUE(runner.synthesize(some_tokens(10), options, {}).mel.equal(mel));
  options.steps = 100;  // too many to be captured
  EXPECT_GT(runner.synthesize(some_tokens(2), options, {}).mel.size(0), 0);
  EXPECT_EQ(captures, VoiceRunner::most_captures);
}

TEST(VoiceRunner, needs_no_capture_for_another_guidance) {
  const Voice voice(spec(3));
  const Weights weights = random_weights(voice, at::kCPU);
  int captures = 0;
  const VoiceRunner runner(voice, weights, std::make_unique<Again>(captures));
  const SpeakingAs as{voice.speaker_vector(weights, 1), 1};
  SynthesisOptions options;
  for (int i = 1; i < 20; ++i) {
    options.guidance = i / 7.0;
    const SynthesizedMel wanted = voice.synthesize(weights, some_tokens(20), options, as);
    EXPECT_LT((runner.synthesize(some_tokens(20), options, as).mel - wanted.mel).abs().max().item<float>(), 1e-4F) << i;
  }
  EXPECT_EQ(captures, 2);
}

TEST(VoiceRunner, captured_on_a_gpu_it_speaks_as_on_the_cpu) {
  if (device_count() == 0 || !at::globalContext().hasCUDA())
    GTEST_SKIP() << "there is no GPU: captured synthesis is NOT tested";
  const Voice voice(spec(3));
  const Weights cpu = random_weights(voice, at::kCPU), gpu = random_weights(voice, at::Device(at::kCUDA, 0));
  const VoiceRunner runner(voice, gpu);
  const SpeakingAs as{voice.speaker_vector(cpu, 1), 1};
  runner.warm_up(100, 200, {});
  for (const int64_t count : {3, 64, 65, 3}) {
    const SynthesizedMel wanted = voice.synthesize(cpu, some_tokens(count), {}, as),
                         made = runner.synthesize(some_tokens(count), {}, as);
    ASSERT_EQ(made.durations, wanted.durations);
    EXPECT_LT((made.mel - wanted.mel).abs().max().item<float>(), 2e-2F) << count;
    EXPECT_TRUE(runner.synthesize(some_tokens(count), {}, as).mel.equal(made.mel)) << count;
  }
}

}  // namespace
}  // namespace myxtts
