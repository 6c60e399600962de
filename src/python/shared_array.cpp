#include "python/shared_array.h"

#include "base/error.h"
#include "python/dlpack.h"
#include "python/without_gil.h"

#include <cstring>
#include <optional>
#include <utility>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

namespace nb = nanobind;

namespace myxtts {
namespace {

const char* numpy_type(DType dtype) { return dtype == DType::int32 ? "int32" : "float32"; }
const char* type_string(DType dtype) { return dtype == DType::int32 ? "<i4" : "<f4"; }

// In elements.
std::vector<int64_t> strides_of(const Array& array) {
  std::vector<int64_t> strides(array.dims.size(), 1);
  for (size_t i = strides.size(); i-- > 1;) strides[i - 1] = strides[i] * array.dims[i];
  return strides;
}

nb::tuple tuple_of(const std::vector<int64_t>& values) {
  nb::list list;
  for (const int64_t value : values) list.append(value);
  return nb::tuple(list);
}

// What a capsule points at: the structure that the consumer reads, and what it refers to.
template <typename Managed>
struct Exported {
  Managed managed;
  SharedArray shared;
  std::vector<int64_t> strides;
};

template <typename Managed>
nb::object make_capsule(SharedArray shared, bool copied) {
  auto exported = std::make_unique<Exported<Managed>>();
  exported->managed = {};
  exported->strides = strides_of(shared.array);
  exported->shared = std::move(shared);
  Array& array = exported->shared.array;
  dlpack::Tensor& tensor = exported->managed.tensor;
  tensor.data = array.data;
  tensor.device = array.device < 0 ? dlpack::Device{dlpack::cpu, 0} : dlpack::Device{dlpack::cuda, array.device};
  tensor.dims = static_cast<int32_t>(array.dims.size());
  tensor.dtype = {array.dtype == DType::int32 ? dlpack::signed_integer : dlpack::floating, 32, 1};
  tensor.shape = array.dims.data(), tensor.strides = exported->strides.data();
  exported->managed.context = exported.get();
  exported->managed.deleter = [](Managed* self) { delete static_cast<Exported<Managed>*>(self->context); };
  if constexpr (std::is_same_v<Managed, dlpack::ManagedVersioned>) {
    exported->managed.major = 1;
    exported->managed.flags = copied ? uint64_t{dlpack::is_copied} : 0;
  }
  PyObject* const capsule = PyCapsule_New(&exported->managed, Managed::name, [](PyObject* self) {
    if (PyCapsule_IsValid(self, Managed::name) == 0) return;  // it was taken over, its deleter with it
    auto* const managed = static_cast<Managed*>(PyCapsule_GetPointer(self, Managed::name));
    managed->deleter(managed);
  });
  if (capsule == nullptr) throw nb::python_error();
  exported.release();  // NOLINT(bugprone-unused-return-value): the capsule has it
  return nb::steal(capsule);
}

[[noreturn]] void refuse(const std::string& sentence) { throw nb::buffer_error(sentence.c_str()); }

// As the array API numbers them: 1 the default stream, 2 that of the thread, -1 none, others are handles.
void make_ready(const SharedArray& shared, std::optional<int64_t> stream) {
  if (shared.array.device < 0) {
    if (stream && *stream != -1) refuse("an array in host memory takes no stream");
    return;
  }
  if (stream == 0) refuse("stream 0 is ambiguous; use 1 for the default stream, 2 for that of the thread");
  if (stream == -1 || !shared.make_ready_on) return;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the protocol hands streams over as numbers
  shared.make_ready_on(reinterpret_cast<StreamHandle>(static_cast<intptr_t>(stream.value_or(1))));
}

using DeviceNumber = std::pair<int, int>;

DeviceNumber dlpack_device(const SharedArray& shared) {
  return shared.array.device < 0 ? DeviceNumber{dlpack::cpu, 0} : DeviceNumber{dlpack::cuda, shared.array.device};
}

nb::object to_dlpack(const SharedArray& shared, std::optional<int64_t> stream, std::optional<DeviceNumber> max_version,
                     std::optional<DeviceNumber> device, std::optional<bool> copy) {
  const bool other_device = device && *device != dlpack_device(shared);
  const bool to_host = copy.value_or(other_device) || other_device;
  if (to_host && (device.value_or(dlpack_device(shared)).first != dlpack::cpu || copy == false)) {
    refuse(fmt::format("an array on {} can be given as it is, or as a copy in host memory", device_text(shared.array)));
  }
  SharedArray given = shared;
  if (to_host) {
    const WithoutGil released;
    given = copy_to_host(shared);
  } else {
    make_ready(shared, stream);
  }
  if (max_version && max_version->first >= 1) return make_capsule<dlpack::ManagedVersioned>(std::move(given), to_host);
  return make_capsule<dlpack::Managed>(std::move(given), to_host);
}

nb::dict interface_of(const SharedArray& shared) {
  nb::dict interface;
  interface["shape"] = tuple_of(shared.array.dims);
  interface["typestr"] = type_string(shared.array.dtype);
  interface["data"] = nb::make_tuple(reinterpret_cast<uintptr_t>(shared.array.data), false);
  interface["version"] = 3;
  return interface;
}

nb::dict cuda_interface_of(const SharedArray& shared) {
  if (shared.array.device < 0) throw nb::attribute_error("the array is in host memory");
  nb::dict interface = interface_of(shared);
  interface["strides"] = nb::none();
  interface["stream"] = 1;  // what it is ready on, and what its memory is given back on
  return interface;
}

nb::dict array_interface_of(const SharedArray& shared) {
  if (shared.array.device >= 0) throw nb::attribute_error("the array is not in host memory");
  return interface_of(shared);
}

nb::object to_numpy(const nb::object& self, const nb::args& args, const nb::kwargs& kwargs) {
  const Array& array = nb::cast<const SharedArray&>(self).array;
  if (array.device >= 0) {
    fail("array", "it is on {}, where NumPy cannot read it", device_text(array), way_out("take batch.cpu()"));
  }
  const nb::object view = nb::steal(PyMemoryView_FromObject(self.ptr()));
  return nb::module_::import_("numpy").attr("asarray")(view, *args, **kwargs);
}

// A view by Python's buffer protocol, which memoryview and NumPy ask for first.
struct View {
  std::vector<Py_ssize_t> shape, strides;
};

int get_buffer(PyObject* self, Py_buffer* view, int /*flags*/) {
  const auto& shared = *nb::inst_ptr<SharedArray>(self);
  const Array& array = shared.array;
  if (array.device >= 0) {
    PyErr_Format(PyExc_BufferError, "the array is on %s", device_text(array).c_str());
    view->obj = nullptr;
    return -1;
  }
  auto* const dims = new View;
  for (const int64_t dim : array.dims) dims->shape.push_back(dim);
  for (const int64_t stride : strides_of(array)) {
    dims->strides.push_back(stride * static_cast<Py_ssize_t>(dtype_bytes(array.dtype)));
  }
  *view = {};
  view->buf = array.data;
  view->obj = Py_NewRef(self);
  view->len = static_cast<Py_ssize_t>(array.bytes());
  view->itemsize = static_cast<Py_ssize_t>(dtype_bytes(array.dtype));
  view->format = const_cast<char*>(array.dtype == DType::int32 ? "i" : "f");
  view->ndim = static_cast<int>(array.dims.size());
  view->shape = dims->shape.data(), view->strides = dims->strides.data();
  view->internal = dims;
  return 0;
}

void release_buffer(PyObject* /*self*/, Py_buffer* view) { delete static_cast<View*>(view->internal); }

std::string describe(const SharedArray& shared) {
  return fmt::format("Array({}, shape={}, dtype={}, device={})", shared.array.name,
                     nb::cast<std::string>(nb::str(tuple_of(shared.array.dims))), numpy_type(shared.array.dtype),
                     device_text(shared.array));
}

}  // namespace

std::string device_text(const Array& array) { return array.device < 0 ? "cpu" : fmt::format("cuda:{}", array.device); }

SharedArray copy_to_host(const SharedArray& from) {
  const auto memory = std::make_shared<HostBuffer>(from.array.bytes(), false);
  if (from.array.device < 0) {
    std::memcpy(memory->data(), from.array.data, from.array.bytes());
  } else {
    download(from.array.device, from.array.data, {memory->data(), from.array.bytes()});
  }
  SharedArray copy{from.array, memory};
  copy.array.data = memory->data(), copy.array.device = -1;
  return copy;
}

void bind_array(nb::module_& module) {
  static PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
                                {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
                                {0, nullptr}};
  nb::class_<SharedArray>(module, "Array", nb::type_slots(slots),
                          "A named array of a batch, read without a copy: by DLPack (torch.from_dlpack,\n"
                          "jax.dlpack.from_dlpack, numpy.from_dlpack), by numpy.asarray and memoryview in host\n"
                          "memory, by __cuda_array_interface__ on a GPU. As long as it, or anything made of it,\n"
                          "lives, its batch keeps its place in the loader's ring.")
      .def_prop_ro(
          "name", [](const SharedArray& self) { return self.array.name; }, "What it is called.")
      .def_prop_ro(
          "shape", [](const SharedArray& self) { return tuple_of(self.array.dims); },
          nb::sig("def shape(self) -> tuple[int, ...]"), "Its dimensions, rows first.")
      .def_prop_ro(
          "dtype", [](const SharedArray& self) { return numpy_type(self.array.dtype); }, "int32 or float32.")
      .def_prop_ro(
          "device", [](const SharedArray& self) { return device_text(self.array); }, "cpu or cuda:N.")
      .def_prop_ro(
          "nbytes", [](const SharedArray& self) { return self.array.bytes(); }, "Bytes of its memory.")
      .def(
          "data_ptr", [](const SharedArray& self) { return reinterpret_cast<uintptr_t>(self.array.data); },
          "Address of the first element.")
      .def("__len__", [](const SharedArray& self) { return self.array.dims.front(); })
      .def("__repr__", describe)
      .def("__dlpack__", to_dlpack, nb::kw_only(), nb::arg("stream") = nb::none(), nb::arg("max_version") = nb::none(),
           nb::arg("dl_device") = nb::none(), nb::arg("copy") = nb::none(),
           nb::sig("def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, int] | None = None, "
                   "dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> typing.Any"),
           "A DLPack capsule. Work that `stream` is given from now on sees the array as it is to be, and its memory\n"
           "is used again only after the work that the stream has when the last holder lets go.")
      .def("__dlpack_device__", dlpack_device, "Device type and number, as DLPack numbers them.")
      .def_prop_ro("__array_interface__", array_interface_of, nb::sig("def __array_interface__(self) -> dict"))
      .def_prop_ro("__cuda_array_interface__", cuda_interface_of, nb::sig("def __cuda_array_interface__(self) -> dict"))
      .def("__array__", to_numpy, nb::sig("def __array__(self, *args, **kwargs) -> typing.Any"),
           "For NumPy; refuses an array on a GPU with a sentence.");
}

}  // namespace myxtts
