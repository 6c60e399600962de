// A graph of ONNX operators while it is built, and written as a model file. Values are written like tensors:
//   OnnxValue y = silu(linear(x, weight)) + x * 0.5;
// Opset 13: what onnxruntime reads since 2020. The graph owns everything; one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include <ATen/core/Tensor.h>

namespace myxtts {

class OnnxGraph;

// A result of a node, a constant or an input, by its name. Belongs to the graph.
struct OnnxValue {
  OnnxGraph* graph = nullptr;
  std::string name = {};  // empty: an input that is left out

  bool defined() const { return graph != nullptr; }
};

using OnnxAttributes = std::map<std::string, std::variant<int64_t, std::vector<int64_t>, double>>;

// How large weights are stored. A runtime makes float32 of them once, when it loads the model.
// int8: the matrices of blocks, with a scale per output; the others, which decide durations and values, are float16.
enum class WeightPrecision { float32, float16, int8 };

class OnnxGraph {
 public:
  // Throws Error in a build without ONNX.
  OnnxGraph(const std::string& name, WeightPrecision precision);
  ~OnnxGraph();
  OnnxGraph(const OnnxGraph&) = delete;
  OnnxGraph& operator=(const OnnxGraph&) = delete;

  // Dimensions are numbers, or names of what is known at run time. `type` is float or int64.
  OnnxValue input(const std::string& name, at::ScalarType type, const std::vector<std::string>& dims);
  void output(const std::string& name, const OnnxValue& value, const std::vector<std::string>& dims);
  void describe(const std::string& key, const std::string& value);  // metadata

  OnnxValue node(const std::string& op, const std::vector<OnnxValue>& inputs, const OnnxAttributes& attributes = {});
  std::vector<OnnxValue> nodes(size_t results, const std::string& op, const std::vector<OnnxValue>& inputs,
                               const OnnxAttributes& attributes = {});

  // Float or int64, stored as it is.
  OnnxValue constant(const at::Tensor& values);
  OnnxValue scalar(double value);  // float; those of one value are one constant
  OnnxValue integer(int64_t value);
  OnnxValue integers(const std::vector<int64_t>& values);
  // Float [outputs, ...], stored in the graph's precision; `of_block`: it may be int8. A tensor is stored once, and
  // must outlive the graph.
  OnnxValue weight(const at::Tensor& values, bool of_block);

  // Returns the size in bytes.
  uint64_t write(const std::filesystem::path& path) const;

 private:
  OnnxValue store(const at::Tensor& values);

  struct Model;
  std::unique_ptr<Model> model_;
  WeightPrecision precision_;
  std::map<double, OnnxValue> scalars_;
  std::map<const void*, OnnxValue> weights_;
};

OnnxValue operator+(const OnnxValue& a, const OnnxValue& b);
OnnxValue operator-(const OnnxValue& a, const OnnxValue& b);
OnnxValue operator*(const OnnxValue& a, const OnnxValue& b);
OnnxValue operator/(const OnnxValue& a, const OnnxValue& b);
OnnxValue operator+(const OnnxValue& a, double b);
OnnxValue operator*(const OnnxValue& a, double b);

}  // namespace myxtts
