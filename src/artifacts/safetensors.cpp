#include "artifacts/safetensors.h"

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"

#include <cstring>
#include <limits>
#include <optional>
#include <set>

namespace myxtts {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::json;

constexpr uint64_t length_bytes = 8;  // length of the header, at the start of the file
constexpr uint64_t data_alignment = 64;
constexpr uint64_t max_header_bytes = 100'000'000;  // limit of the Python package
constexpr const char* metadata_key = "__metadata__";
constexpr const char* no_checksum = "0000000000000000";
// Prefix of every header written here; the header checksum follows.
constexpr std::string_view header_start = R"({"__metadata__":{"header_checksum":")";

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

// Empty if the product is negative or overflows 63 bits.
std::optional<int64_t> bytes_needed(std::string_view dtype, std::span<const int64_t> shape) {
  int64_t bytes = safetensors_element_bytes(dtype);
  for (const int64_t length : shape) {
    if (length < 0 || __builtin_mul_overflow(bytes, length, &bytes)) return std::nullopt;
  }
  return bytes;
}

uint64_t hash_of_header(std::string header) {
  header.replace(header_start.size(), std::strlen(no_checksum), no_checksum);
  return hash_text(header);
}

// Tensors in file order.
std::vector<const TensorView*> ordered(std::span<const TensorView> tensors, const fs::path& path) {
  std::set<std::string_view> names;
  std::vector<const TensorView*> order;
  for (const TensorView& tensor : tensors) {
    if (tensor.name == metadata_key || !names.insert(tensor.name).second) {
      fail("safetensors", "{}: a tensor cannot be called '{}', since that name is taken", path.string(), tensor.name);
    }
    const std::optional<int64_t> bytes = bytes_needed(tensor.dtype, tensor.shape);
    if (safetensors_element_bytes(tensor.dtype) == 0 || !bytes || static_cast<size_t>(*bytes) != tensor.data.size()) {
      fail("safetensors", "{}: tensor '{}' has {} bytes, which does not match its shape of {} elements", path.string(),
           tensor.name, tensor.data.size(), tensor.dtype);
    }
    order.push_back(&tensor);
  }
  std::stable_sort(order.begin(), order.end(), [](const TensorView* a, const TensorView* b) {
    return safetensors_element_bytes(a->dtype) > safetensors_element_bytes(b->dtype);
  });
  return order;
}

std::string make_header(std::span<const TensorView* const> order, const SafetensorsMetadata& metadata,
                        const fs::path& path) {
  StreamHash data;
  for (const TensorView* tensor : order) data.add(tensor->data);
  nlohmann::ordered_json all_metadata = {{"header_checksum", no_checksum}, {"checksum", hash_hex(data.value())}};
  for (const auto& [key, value] : metadata) {
    // Drop old checksums of a file that is rewritten.
    if (key != "header_checksum" && key != "checksum") all_metadata[key] = value;
  }
  std::string text;
  try {
    text = fmt::format("{{\"{}\":{}", metadata_key, all_metadata.dump());
    size_t end = 0;
    for (const TensorView* tensor : order) {
      const size_t begin = end;
      end += tensor->data.size();
      const Json entry = {{"dtype", tensor->dtype}, {"shape", tensor->shape}, {"data_offsets", {begin, end}}};
      text += fmt::format(",{}:{}", Json(tensor->name).dump(), entry.dump());
    }
    text += "}";
  } catch (const Json::exception&) {
    fail("safetensors", "{}: a name or a metadata value is not UTF-8", path.string());
  }
  const uint64_t spaces = (data_alignment - (length_bytes + text.size()) % data_alignment) % data_alignment;
  text.append(spaces, ' ');
  if (text.size() > max_header_bytes) {
    fail("safetensors", "{}: a header of {} bytes is larger than readers accept", path.string(), text.size());
  }
  text.replace(header_start.size(), std::strlen(no_checksum), hash_hex(hash_of_header(text)));
  return text;
}

Json parse_header(std::string_view text, const fs::path& path) {
  constexpr size_t depth_of_header = 3;
  std::string problem;
  Json header = parse_json(text, &problem, depth_of_header);
  if (!header.is_object()) {
    reject_input("safetensors", "{}: its header is not a JSON object{}{}", path.string(), problem.empty() ? "" : ": ",
                 problem);
  }
  return header;
}

// Parses one header entry; the view points into `data`.
TensorView parse_tensor(const std::string& name, const Json& entry, std::span<const std::byte> data,
                        const fs::path& path) {
  TensorView tensor;
  const auto all_counts = [](const Json& list) {
    return list.is_array() && std::all_of(list.begin(), list.end(), [](const Json& value) {
             return value.is_number_unsigned() && value.get<uint64_t>() <= std::numeric_limits<int64_t>::max();
           });
  };
  if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string() || !entry.contains("shape") ||
      !all_counts(entry["shape"]) || !entry.contains("data_offsets") || !all_counts(entry["data_offsets"]) ||
      entry["data_offsets"].size() != 2) {
    reject_input("safetensors", "{}: the header's entry '{}' does not describe a tensor", path.string(), name);
  }
  tensor.name = name, tensor.dtype = entry["dtype"].get<std::string>();
  tensor.shape = entry["shape"].get<std::vector<int64_t>>();
  const uint64_t begin = entry["data_offsets"][0], end = entry["data_offsets"][1];
  if (safetensors_element_bytes(tensor.dtype) == 0) {
    reject_input("safetensors", "{}: tensor '{}' has the unknown type '{}'", path.string(), name, tensor.dtype);
  }
  if (begin > end || end > data.size()) {
    reject_input("safetensors", "{}: tensor '{}' is at bytes {} to {} of {} (is the file truncated?)", path.string(),
                 name, begin, end, data.size());
  }
  const std::optional<int64_t> bytes = bytes_needed(tensor.dtype, tensor.shape);
  if (!bytes || static_cast<uint64_t>(*bytes) != end - begin) {
    reject_input("safetensors", "{}: tensor '{}' has {} bytes, which does not match its shape of {} elements",
                 path.string(), name, end - begin, tensor.dtype);
  }
  tensor.data = data.subspan(begin, end - begin);
  return tensor;
}

SafetensorsMetadata parse_metadata(const Json& entry, const fs::path& path) {
  SafetensorsMetadata metadata;
  if (!entry.is_object()) reject_input("safetensors", "{}: its metadata is not an object", path.string());
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_string()) reject_input("safetensors", "{}: its metadata '{}' is not a string", path.string(), key);
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

// Checks that each byte belongs to exactly one tensor.
void check_coverage(const std::map<std::string, TensorView, std::less<>>& tensors, std::span<const std::byte> data,
                    const fs::path& path) {
  std::vector<const TensorView*> order;
  for (const auto& [name, tensor] : tensors) order.push_back(&tensor);
  const auto end_of = [](const TensorView* tensor) { return tensor->data.data() + tensor->data.size(); };
  std::sort(order.begin(), order.end(), [&](const TensorView* a, const TensorView* b) {
    return std::pair(a->data.data(), end_of(a)) < std::pair(b->data.data(), end_of(b));
  });
  const std::byte* end = data.data();
  for (const TensorView* tensor : order) {
    if (tensor->data.data() < end) {
      reject_input("safetensors", "{}: tensor '{}' overlaps another", path.string(), tensor->name);
    }
    if (tensor->data.data() > end) {
      reject_input("safetensors", "{}: {} bytes before tensor '{}' belong to no tensor", path.string(),
                   tensor->data.data() - end, tensor->name);
    }
    end = end_of(tensor);
  }
  if (end != data.data() + data.size()) {
    reject_input("safetensors", "{}: {} bytes at its end belong to no tensor", path.string(),
                 data.data() + data.size() - end);
  }
}

}  // namespace

int64_t safetensors_element_bytes(std::string_view dtype) {
  struct Type {
    std::string_view name;
    int64_t bytes;
  };
  static constexpr Type types[] = {{"F32", 4},  {"BF16", 2}, {"F16", 2},     {"I64", 8},    {"I32", 4}, {"U8", 1},
                                   {"BOOL", 1}, {"F64", 8},  {"I16", 2},     {"I8", 1},     {"U16", 2}, {"U32", 4},
                                   {"U64", 8},  {"C64", 8},  {"F8_E4M3", 1}, {"F8_E5M2", 1}};
  for (const Type& type : types) {
    if (type.name == dtype) return type.bytes;
  }
  return 0;
}

void write_safetensors(const fs::path& path, std::span<const TensorView> tensors, const SafetensorsMetadata& metadata) {
  const std::vector<const TensorView*> order = ordered(tensors, path);
  const std::string header = make_header(order, metadata, path);
  const uint64_t header_bytes = header.size();
  FileWriter file(path);
  file.write(std::as_bytes(std::span(&header_bytes, 1)));
  file.write(bytes_of(header));
  for (const TensorView* tensor : order) file.write(tensor->data);
  file.finish();
}

SafetensorsFile::SafetensorsFile(fs::path path) : path_(std::move(path)), file_(path_) {
  const std::span<const std::byte> bytes = file_.bytes();
  if (bytes.size() < length_bytes) {
    reject_input("safetensors", "{} has {} bytes and is not a safetensors file", path_.string(), bytes.size());
  }
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), length_bytes);
  if (header_bytes > max_header_bytes || header_bytes > bytes.size() - length_bytes) {
    reject_input("safetensors",
                 "{} is truncated or not a safetensors file: it has {} bytes, and its header would have {}",
                 path_.string(), bytes.size(), header_bytes);
  }
  const std::string text(reinterpret_cast<const char*>(bytes.data()) + length_bytes, header_bytes);
  data_ = bytes.subspan(length_bytes + header_bytes);
  const Json header = parse_header(text, path_);
  if (header.contains(metadata_key)) metadata_ = parse_metadata(header[metadata_key], path_);
  if (metadata_.contains("checksum") || metadata_.contains("header_checksum")) {
    if (!metadata_.contains("checksum") || !text.starts_with(header_start) ||
        metadata_["header_checksum"] != hash_hex(hash_of_header(text))) {
      reject_input("safetensors", "{}: its header does not match its checksum; the file is damaged", path_.string());
    }
  }
  for (const auto& [name, entry] : header.items()) {
    if (name != metadata_key) tensors_.emplace(name, parse_tensor(name, entry, data_, path_));
  }
  check_coverage(tensors_, data_, path_);
}

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors_) names.push_back(name);
  return names;
}

const TensorView* SafetensorsFile::find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

const TensorView& SafetensorsFile::tensor(std::string_view name) const {
  const TensorView* const found = find(name);
  if (found == nullptr) reject_input("safetensors", "{} has no tensor '{}'", path_.string(), name);
  return *found;
}

void SafetensorsFile::check_whole() const {
  if (!file_.whole()) reject_input("safetensors", "{} was cut short while it was read", path_.string());
}

void SafetensorsFile::verify() const {
  const auto wanted = metadata_.find("checksum");
  if (wanted == metadata_.end()) return;
  if (wanted->second != hash_hex(hash_bytes(data_.data(), data_.size()))) {
    reject_input("safetensors", "{}: its data do not match their checksum; the file is damaged", path_.string());
  }
}

}  // namespace myxtts
