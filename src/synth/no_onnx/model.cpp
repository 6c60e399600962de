#include "base/error.h"
#include "synth/export/graph.h"

namespace myxtts {

struct OnnxGraph::Model {};

OnnxGraph::OnnxGraph(const std::string&, WeightPrecision precision) : precision_(precision) {
  reject_input("export", "this build has no ONNX",
               way_out("install libonnx-dev and build again, or give --format safetensors"));
}

OnnxGraph::~OnnxGraph() = default;
OnnxValue OnnxGraph::input(const std::string&, at::ScalarType, const std::vector<std::string>&) { return {}; }
void OnnxGraph::output(const std::string&, const OnnxValue&, const std::vector<std::string>&) {}
void OnnxGraph::describe(const std::string&, const std::string&) {}
std::vector<OnnxValue> OnnxGraph::nodes(size_t results, const std::string&, const std::vector<OnnxValue>&,
                                        const OnnxAttributes&) {
  return std::vector<OnnxValue>(results);
}
OnnxValue OnnxGraph::store(const at::Tensor&) { return {}; }
uint64_t OnnxGraph::write(const std::filesystem::path&) const { return 0; }

}  // namespace myxtts
