#include "artifacts/safetensors.h"

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <random>

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace myxtts {
namespace {
namespace fs = std::filesystem;

class Safetensors : public testing::Test {
 protected:
  fs::path folder = fs::path(testing::TempDir()) / "myxtts_safetensors_test";
  fs::path path = folder / "a.safetensors";
  void SetUp() override { fs::create_directories(folder); }
  void TearDown() override { fs::remove_all(folder); }

  // A file with any header, and so many bytes of data.
  void write_raw(std::string header, size_t data_bytes, uint64_t extra_length = 0) const {
    const uint64_t length = header.size() + extra_length;
    std::string file(sizeof length, '\0');
    std::memcpy(file.data(), &length, sizeof length);
    write_file_atomically(path, file + header + std::string(data_bytes, 'x'));
  }

  // What opening says; empty when it says nothing.
  std::string complaint() const {
    try {
      const SafetensorsFile file(path);
      file.verify();
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(path.string()), std::string::npos) << error.what();
      return error.what();
    }
    return "";
  }
};

std::span<const std::byte> bytes_of(const std::vector<float>& values) { return std::as_bytes(std::span(values)); }

TEST_F(Safetensors, what_is_written_reads_back) {
  const std::vector<float> weights = {1, 2, 3, 4, 5, 6}, scalar = {0.5F};
  const std::vector<std::byte> flags(3, std::byte{1});
  const int64_t step = 77;
  const TensorView tensors[] = {{"flags", "BOOL", {3}, flags},
                                {"weights", "F32", {2, 3}, bytes_of(weights)},
                                {"نام \"x\"", "F32", {}, bytes_of(scalar)},
                                {"step", "I64", {1}, std::as_bytes(std::span(&step, 1))},
                                {"empty", "F32", {0, 5}, {}}};
  write_safetensors(path, tensors, {{"format", "pt"}, {"note", "a\nb"}, {"checksum", "an old one"}});

  const SafetensorsFile file(path);
  file.verify();
  EXPECT_EQ(file.names(), (std::vector<std::string>{"empty", "flags", "step", "weights", "نام \"x\""}));
  for (const TensorView& wanted : tensors) {
    const TensorView& found = file.tensor(wanted.name);
    EXPECT_EQ(found.dtype, wanted.dtype);
    EXPECT_EQ(found.shape, wanted.shape);
    EXPECT_TRUE(std::ranges::equal(found.data, wanted.data));
    if (!found.data.empty()) {
      const auto element_bytes = static_cast<uintptr_t>(safetensors_element_bytes(found.dtype));
      EXPECT_EQ(reinterpret_cast<uintptr_t>(found.data.data()) % element_bytes, 0U) << found.name;
    }
  }
  EXPECT_EQ(reinterpret_cast<uintptr_t>(file.tensor("step").data.data()) % 64, 0U);  // the first: the widest
  EXPECT_EQ(file.find("nothing"), nullptr);
  EXPECT_THROW(file.tensor("nothing"), Error);
  EXPECT_EQ(file.metadata().at("note"), "a\nb");
  EXPECT_EQ(file.metadata().at("checksum").size(), 16U);
}

TEST_F(Safetensors, random_tensors_read_back) {
  std::mt19937 random(11);
  const char* const types[] = {"F64", "F32", "BF16", "U8", "F8_E4M3", "I16"};
  for (int round = 0; round < 60; ++round) {
    std::vector<std::vector<std::byte>> data(random() % 20);
    std::vector<TensorView> tensors;
    for (size_t i = 0; i < data.size(); ++i) {
      TensorView tensor{fmt::format("t{}", i * 7919 % 1000), types[random() % 6], {}, {}};
      int64_t bytes = safetensors_element_bytes(tensor.dtype);
      for (unsigned axis = random() % 4; axis > 0; --axis) bytes *= tensor.shape.emplace_back(random() % 12);
      data[i].resize(static_cast<size_t>(bytes));
      for (std::byte& byte : data[i]) byte = static_cast<std::byte>(random());
      tensor.data = data[i];
      tensors.push_back(tensor);
    }
    write_safetensors(path, tensors);
    const SafetensorsFile file(path);
    file.verify();
    ASSERT_EQ(file.names().size(), tensors.size());
    for (const TensorView& wanted : tensors) {
      ASSERT_EQ(file.tensor(wanted.name).shape, wanted.shape);
      ASSERT_TRUE(std::ranges::equal(file.tensor(wanted.name).data, wanted.data));
    }
  }
}

TEST_F(Safetensors, any_damaged_byte_is_found) {
  const std::vector<float> values = {1, 2, 3, 4};
  write_safetensors(path, std::vector<TensorView>{{"values", "F32", {4}, bytes_of(values)}}, {{"key", "value"}});
  const std::string whole = read_text_file(path, 10000);
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const int bit : {0, 5}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      write_file_atomically(path, damaged, Sync::no);
      ASSERT_NE(complaint(), "") << "byte " << at << ", bit " << bit;
    }
  }
  for (size_t size = 0; size < whole.size(); ++size) {
    write_file_atomically(path, whole.substr(0, size), Sync::no);
    ASSERT_NE(complaint(), "") << "cut off after " << size << " bytes";
  }
}

TEST_F(Safetensors, a_file_without_checksums_is_accepted) {
  write_raw(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8);
  EXPECT_EQ(complaint(), "");
}

TEST_F(Safetensors, hostile_headers_are_refused) {
  struct Case {
    const char* says;
    const char* header;
    size_t data_bytes;
  };
  const Case cases[] = {
      {"not a JSON object", "", 0},
      {"not a JSON object", "[1,2]", 0},
      {"not a JSON object", R"({"a":)", 0},
      {"not a JSON object", "{\"\xff\":1}", 0},
      {"nested too deeply", R"({"a":{"shape":[[[1]]]}})", 0},
      {"has 'a' twice", R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":1})", 0},
      {"has 'dtype' twice", R"({"a":{"dtype":"U8","dtype":"I8","shape":[0],"data_offsets":[0,0]}})", 0},
      {"'a' does not describe", R"({"a":3})", 0},
      {"'a' does not describe", R"({"a":{"shape":[0],"data_offsets":[0,0]}})", 0},
      {"'a' does not describe", R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,0]}})", 0},
      {"'a' does not describe", R"({"a":{"dtype":"U8","shape":[1.5],"data_offsets":[0,1]}})", 1},
      {"'a' does not describe", R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0]}})", 1},
      {"'a' does not describe", R"({"a":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,1]}})", 1},
      {"unknown type 'Q7'", R"({"a":{"dtype":"Q7","shape":[1],"data_offsets":[0,1]}})", 1},
      {"bytes 0 to 8 of 7", R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 7},
      {"bytes 8 to 0 of 8", R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8},
      {"not match its shape of F32", R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8},
      {"not match its shape of F32", R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})",
       0},
      {"'b' overlaps",
       R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
       6},
      {"2 bytes before tensor 'a'", R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})", 6},
      {"2 bytes at its end", R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 6},
      {"metadata is not an object", R"({"__metadata__":[]})", 0},
      {"metadata 'k' is not a string", R"({"__metadata__":{"k":1}})", 0},
      {"header does not match", R"({"__metadata__":{"checksum":"0123456789abcdef"}})", 0},
      {"header does not match", R"({"__metadata__":{"header_checksum":"0123456789abcdef"}})", 0},
      {"header does not match", R"({"__metadata__":{"header_checksum":""}})", 0},
  };
  for (const Case& wrong : cases) {
    write_raw(wrong.header, wrong.data_bytes);
    EXPECT_NE(complaint().find(wrong.says), std::string::npos) << wrong.header << "\n" << complaint();
  }
  write_raw("{}", 0, uint64_t{1} << 60);
  EXPECT_NE(complaint().find("header would have 1152921504606846978"), std::string::npos) << complaint();
  write_raw(std::string(1 << 20, '['), 0);
  EXPECT_NE(complaint().find("nested too deeply"), std::string::npos);
  write_file_atomically(path, "short");
  EXPECT_NE(complaint().find("5 bytes and is not a safetensors file"), std::string::npos);
}

TEST_F(Safetensors, what_cannot_be_written_is_refused_before_a_file_is_made) {
  const std::vector<float> values = {1, 2};
  const auto write = [&](std::vector<TensorView> tensors, const SafetensorsMetadata& metadata = {}) {
    write_safetensors(path, tensors, metadata);
  };
  EXPECT_THROW(write({{"a", "F32", {3}, bytes_of(values)}}), Error);
  EXPECT_THROW(write({{"a", "F31", {2}, bytes_of(values)}}), Error);
  EXPECT_THROW(write({{"a", "F32", {2}, bytes_of(values)}, {"a", "F32", {2}, bytes_of(values)}}), Error);
  EXPECT_THROW(write({{"__metadata__", "F32", {2}, bytes_of(values)}}), Error);
  EXPECT_THROW(write({{"\xff", "F32", {2}, bytes_of(values)}}), Error);
  EXPECT_THROW(write({}, {{"key", "\xff"}}), Error);
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST_F(Safetensors, a_write_that_fails_keeps_the_old_file_and_leaves_nothing) {
  const std::vector<float> small = {1, 2}, large(1 << 20);
  write_safetensors(path, std::vector<TensorView>{{"small", "F32", {2}, bytes_of(small)}});

  // No file may grow beyond 64 KiB: the system refuses the rest, as on a full disk.
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit tight = before;
  tight.rlim_cur = 65536;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
  std::string message;
  try {
    write_safetensors(path, std::vector<TensorView>{{"large", "F32", {1 << 20}, bytes_of(large)}});
  } catch (const Error& error) {
    message = error.what();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);

  EXPECT_NE(message.find(std::strerror(EFBIG)), std::string::npos) << message;
  EXPECT_NE(message.find(path.string()), std::string::npos) << message;
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1);
  const SafetensorsFile old(path);
  old.verify();
  EXPECT_NE(old.find("small"), nullptr);
}

}  // namespace
}  // namespace myxtts
