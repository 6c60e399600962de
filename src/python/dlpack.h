// The structures by which libraries hand each other arrays without a copy: DLPack's binary interface, versions 0 and 1.
// See https://dmlc.github.io/dlpack/latest/.
#pragma once

#include <cstdint>

namespace myxtts::dlpack {

enum DeviceType : int32_t { cpu = 1, cuda = 2, cuda_host = 3, cuda_managed = 13 };
enum TypeCode : uint8_t { signed_integer = 0, floating = 2 };
enum Flags : uint64_t { read_only = 1, is_copied = 2 };

struct Device {
  int32_t type;
  int32_t number;
};

struct DataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct Tensor {
  void* data;
  Device device;
  int32_t dims;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements
  uint64_t byte_offset;
};

struct Managed {
  static constexpr const char* name = "dltensor";
  static constexpr const char* used_name = "used_dltensor";
  Tensor tensor;
  void* context;
  void (*deleter)(Managed*);
};

struct ManagedVersioned {
  static constexpr const char* name = "dltensor_versioned";
  static constexpr const char* used_name = "used_dltensor_versioned";
  uint32_t major, minor;
  void* context;
  void (*deleter)(ManagedVersioned*);
  uint64_t flags;
  Tensor tensor;
};

}  // namespace myxtts::dlpack
