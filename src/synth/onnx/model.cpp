#include "base/error.h"
#include "base/files.h"
#include "synth/export/graph.h"

#include <ATen/core/Tensor.h>
#include <onnx/onnx_pb.h>

namespace myxtts {

struct OnnxGraph::Model {
  onnx::ModelProto proto;
  int64_t named = 0;

  std::string new_name(const std::string& of) { return of + "_" + std::to_string(++named); }
};

namespace {

constexpr int64_t opset = 13, ir_version = 7;

onnx::TensorProto_DataType type_of(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return onnx::TensorProto_DataType_FLOAT;
    case at::kHalf:
      return onnx::TensorProto_DataType_FLOAT16;
    case at::kChar:
      return onnx::TensorProto_DataType_INT8;
    case at::kLong:
      return onnx::TensorProto_DataType_INT64;
    default:
      fail("export", "a tensor has a type that is not written");
  }
}

void describe_value(onnx::ValueInfoProto& info, const std::string& name, at::ScalarType type,
                    const std::vector<std::string>& dims) {
  info.set_name(name);
  onnx::TypeProto_Tensor& tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type_of(type));
  tensor.mutable_shape();
  for (const std::string& dim : dims) {
    auto& added = *tensor.mutable_shape()->add_dim();
    const bool number = dim.find_first_not_of("0123456789") == std::string::npos;
    number ? added.set_dim_value(std::stoll(dim)) : added.set_dim_param(dim);
  }
}

void set_value(onnx::AttributeProto& attribute, int64_t value) {
  attribute.set_type(onnx::AttributeProto_AttributeType_INT);
  attribute.set_i(value);
}

void set_value(onnx::AttributeProto& attribute, double value) {
  attribute.set_type(onnx::AttributeProto_AttributeType_FLOAT);
  attribute.set_f(static_cast<float>(value));
}

void set_value(onnx::AttributeProto& attribute, const std::vector<int64_t>& values) {
  attribute.set_type(onnx::AttributeProto_AttributeType_INTS);
  for (const int64_t value : values) attribute.add_ints(value);
}

}  // namespace

OnnxGraph::OnnxGraph(const std::string& name, WeightPrecision precision)
    : model_(std::make_unique<Model>()), precision_(precision) {
  model_->proto.set_ir_version(ir_version);
  model_->proto.set_producer_name("myxtts");
  model_->proto.mutable_graph()->set_name(name);
  onnx::OperatorSetIdProto& operators = *model_->proto.add_opset_import();
  operators.set_domain("");
  operators.set_version(opset);
}

OnnxGraph::~OnnxGraph() = default;

OnnxValue OnnxGraph::input(const std::string& name, at::ScalarType type, const std::vector<std::string>& dims) {
  describe_value(*model_->proto.mutable_graph()->add_input(), name, type, dims);
  return {this, name};
}

void OnnxGraph::output(const std::string& name, const OnnxValue& value, const std::vector<std::string>& dims) {
  onnx::NodeProto& node = *model_->proto.mutable_graph()->add_node();
  node.set_op_type("Identity");
  node.set_name(name);
  node.add_input(value.name);
  node.add_output(name);
  describe_value(*model_->proto.mutable_graph()->add_output(), name, at::kFloat, dims);
}

void OnnxGraph::describe(const std::string& key, const std::string& value) {
  onnx::StringStringEntryProto& entry = *model_->proto.add_metadata_props();
  entry.set_key(key);
  entry.set_value(value);
}

std::vector<OnnxValue> OnnxGraph::nodes(size_t results, const std::string& op, const std::vector<OnnxValue>& inputs,
                                        const OnnxAttributes& attributes) {
  onnx::NodeProto& node = *model_->proto.mutable_graph()->add_node();
  node.set_op_type(op);
  node.set_name(model_->new_name(op));
  for (const OnnxValue& input : inputs) node.add_input(input.name);
  for (const auto& [name, value] : attributes) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    std::visit([&](const auto& plain) { set_value(attribute, plain); }, value);
  }
  std::vector<OnnxValue> values;
  for (size_t i = 0; i < results; ++i) {
    values.push_back({this, results == 1 ? node.name() : node.name() + "_" + std::to_string(i)});
    node.add_output(values.back().name);
  }
  return values;
}

OnnxValue OnnxGraph::store(const at::Tensor& values) {
  const at::Tensor plain = values.contiguous();
  onnx::TensorProto& tensor = *model_->proto.mutable_graph()->add_initializer();
  tensor.set_name(model_->new_name("constant"));
  tensor.set_data_type(type_of(plain.scalar_type()));
  for (const int64_t size : plain.sizes()) tensor.add_dims(size);
  tensor.set_raw_data(plain.const_data_ptr(), plain.nbytes());
  return {this, tensor.name()};
}

uint64_t OnnxGraph::write(const std::filesystem::path& path) const {
  // What protobuf can hold in one message.
  constexpr size_t most_bytes = 0x7fff'ffff;
  if (model_->proto.ByteSizeLong() > most_bytes) {
    reject_input("export", "{} would be larger than 2 GiB, which ONNX does not hold", path.string(),
                 way_out("give --precision float16"));
  }
  const std::string bytes = model_->proto.SerializeAsString();
  write_file_atomically(path, bytes);
  return bytes.size();
}

}  // namespace myxtts
