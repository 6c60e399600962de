#include "train/teacher.h"

#include "base/workers.h"
#include "loader/make_batch.h"
#include "model/voice.h"
#include "plan/shapes.h"
#include "synth/voice_file.h"
#include "train/tensor_map.h"
#include "train/voice_trainable.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

namespace myxtts {

TeacherMels teacher_mels(const std::filesystem::path& checkpoint, const Corpus& corpus, const DataConfig& data,
                         at::Device device, uint64_t seed) {
  const at::NoGradGuard no_gradients;
  const VoiceTrainable teacher(read_voice_description(checkpoint), {}, /*fused=*/true);
  const at::Tensor flat = load_ema_weights(checkpoint, teacher.voice().layout());
  const Weights weights =
      make_weights(teacher.voice().layout(), flat.to(device, device.is_cuda() ? at::kBFloat16 : at::kFloat), false);
  TeacherMels mels;
  std::vector<int64_t> first(corpus.index.size(), -1);
  int64_t frames = 0;
  for (const ClipLength& length : corpus.index.lengths()) frames += length.mel_frames;
  mels.frames = at::zeros({frames, corpus.mel.n_mels}, at::TensorOptions(at::kFloat).device(device));
  int64_t end = 0;
  ShapePlan shapes = plan_shapes(corpus.index.lengths(), data);
  for (std::vector<Shape>* part : {&shapes.shapes, &shapes.validation}) {
    const BatchPlan plan(std::move(*part), seed, BatchPlan::Visit::every_clip);
    const RowBuilder builder(corpus, plan, teacher.arrays(), 1);
    for (uint64_t number = 0; number < plan.batches_per_epoch(); ++number) {
      const BatchLease batch = make_batch(builder, plan.batch(0, number), static_cast<size_t>(available_cores()));
      TensorMap tensors;
      for (const auto& [name, tensor] : tensors_of(*batch)) tensors.add(name, tensor.to(device));
      // A known speaker is spoken as it will be: by its row of the table.
      if (tensors.contains("reference_lengths")) tensors["reference_lengths"].zero_();
      TensorMap noise = teacher.make_noise(tensors);
      teacher.draw_noise(noise, seeded_generator(device, seed + number), {});
      const at::Tensor spoken = teacher.teacher_forced(weights, tensors, noise);
      for (size_t row = 0; row < batch->clips.size(); ++row) {
        const uint32_t clip = batch->clips[row];
        const int64_t length = batch->lengths[row].mel_frames;
        if (clip == no_clip || first[clip] >= 0) continue;
        mels.frames.narrow(0, end, length).copy_(spoken[static_cast<int64_t>(row)].narrow(0, 0, length));
        first[clip] = end, end += length;
      }
    }
  }
  mels.first = at::tensor(first, at::kLong).to(device);
  return mels;
}

at::Tensor crops_of(const TeacherMels& teacher, const at::Tensor& crops, const at::Tensor& own) {
  const int64_t rows = own.size(0), frames = own.size(1);
  const at::Tensor clip = crops.select(1, 0), first = teacher.first.index_select(0, clip);
  const at::Tensor begin = (first + crops.select(1, 1)).clamp(0, teacher.frames.size(0) - frames);
  const at::Tensor index = begin.unsqueeze(1) + at::arange(frames, begin.options());
  const at::Tensor found = teacher.frames.index_select(0, index.view({-1})).view({rows, frames, own.size(2)});
  return at::where((first >= 0).view({rows, 1, 1}), found, own);
}

}  // namespace myxtts
