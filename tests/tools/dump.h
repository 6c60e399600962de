// What the programs that test_parity.py compares with the twin have in common: a file in, a file out.
#pragma once

#include "artifacts/safetensors.h"
#include "synth/tensor_view.h"

#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

namespace myxtts {

using Results = std::vector<std::pair<std::string, at::Tensor>>;

inline at::Tensor read(const SafetensorsFile& file, const std::string& name) {
  return as_tensor(file.tensor(name), "IN").clone();
}

// Flat, from `model.*`.
inline at::Tensor read_weights(const SafetensorsFile& file, const ParameterLayout& layout) {
  at::Tensor flat = at::zeros({layout.elements()});
  load_flat(file, "IN", "model.", layout, flat);
  return flat;
}

inline void add_gradients_of(const ParameterLayout& layout, const Weights& weights, Results& results) {
  const std::vector<at::Tensor> gradients = layout.views(weights.gradients);
  for (size_t i = 0; i < gradients.size(); ++i)
    results.emplace_back("gradient." + layout.specs()[i].name, gradients[i]);
}

// main(): `compute` makes the results of the file IN.
template <typename Compute>
int dump(int count, char** arguments, const Compute& compute) {
  try {
    if (count != 3) {
      std::fprintf(stderr, "%s IN.safetensors OUT.safetensors\n", arguments[0]);
      return 2;
    }
    const Results results = compute(SafetensorsFile(arguments[1]));
    std::vector<TensorView> written;
    for (const auto& [name, tensor] : results) written.push_back(as_view(name, tensor));
    write_safetensors(arguments[2], written);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

}  // namespace myxtts
