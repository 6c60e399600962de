// Tensors by name, in the order in which they were declared: a batch's arrays, or what a step draws at random.
#pragma once

#include "loader/batch.h"
#include "model/dropout.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

namespace myxtts {

class TensorMap {
 public:
  TensorMap() = default;
  TensorMap(std::initializer_list<std::pair<std::string, at::Tensor>> items) : items_(items) {}

  void add(std::string name, at::Tensor tensor) { items_.emplace_back(std::move(name), std::move(tensor)); }
  // Throws Error if there is none of that name.
  const at::Tensor& operator[](std::string_view name) const;
  at::Tensor& operator[](std::string_view name);
  bool contains(std::string_view name) const;

  // Copies tensors of the same names and shapes into these, without waiting for the device.
  void copy_from(const TensorMap& other);

  RowPlace rows;  // of a batch of which these are some rows

  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

 private:
  std::vector<std::pair<std::string, at::Tensor>> items_;
};

// The batch's arrays as tensors, without a copy: valid while the lease is held. `longest`: cut to such a row, which
// copies.
TensorMap tensors_of(const Batch& batch, const std::optional<RowLength>& longest = std::nullopt);

RowLength longest_row(const Batch& batch);  // at least a token and a frame

// For drawing on that device: the same numbers for the same seed.
at::Generator seeded_generator(at::Device device, uint64_t seed);

// Draws what some rows of a batch get of what is drawn for all of it: `draw` is called with room for the whole.
void draw_rows(at::Tensor& rows, int64_t dimension, const RowPlace& place,
               const std::function<void(at::Tensor&)>& draw);

}  // namespace myxtts
