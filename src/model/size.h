// Sizes of a voice: one table row per size.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace myxtts {

struct ModelSize {
  std::string_view name;
  int64_t encoder_blocks = 0, encoder_width = 0;
  int64_t decoder_blocks = 0, decoder_width = 0;
};

constexpr int64_t head_width = 64;                         // per attention head; model widths are multiples of it
constexpr int64_t encoder_factor = 4, decoder_factor = 4;  // hidden units of a feed-forward per unit of the width
// Convolutions over neighbouring positions, in positions.
constexpr int64_t encoder_kernel = 5;   // of the encoder's feed-forwards
constexpr int64_t decoder_kernel = 7;   // depthwise, before the decoder's feed-forwards
constexpr int64_t duration_kernel = 3;  // of the duration predictor
constexpr int64_t duration_layers = 2;
constexpr int64_t time_embedding_width = 256;  // sinusoidal embedding of the flow time
constexpr int64_t condition_width = 256;       // of the vector that says who speaks, and in which language
// The encoder of references sees so many frames at a time, in one block without attention of the condition's width.
constexpr int64_t reference_window = 7, reference_factor = 8;

constexpr std::array<ModelSize, 4> model_sizes = {{
    //        encoder   decoder          parameters
    {"tiny", 3, 192, 6, 256},     //     8.8 M
    {"small", 4, 256, 8, 384},    //    23.5 M
    {"normal", 4, 512, 12, 512},  //    71.5 M
    {"big", 6, 640, 16, 768},     //   190 M
}};

const ModelSize& model_size(std::string_view name);

}  // namespace myxtts
