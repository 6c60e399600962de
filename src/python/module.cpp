// The extension module myxtts._core. The package around it is in python/myxtts/.
#include "base/error.h"
#include "base/version.h"
#include "device/device.h"
#include "python/feeder.h"
#include "python/held_batch.h"
#include "python/loop_observer.h"
#include "python/mel_maker.h"
#include "python/prepare.h"
#include "python/shared_array.h"

#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace myxtts {
namespace {

// An Error becomes the package's own exception, with the same parts.
void translate(const std::exception_ptr& thrown, void* /*payload*/) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    const nb::object type = nb::module_::import_("myxtts._error").attr("Error");
    const nb::object value = type(error.message().c_str(), name_of(error.code()), error.where().c_str(),
                                  error.way_out().c_str(), error.setting().c_str());
    PyErr_SetObject(type.ptr(), value.ptr());
  }
}

}  // namespace
}  // namespace myxtts

NB_MODULE(_core, module) {
  module.doc() = "The loader, the mels and the diagnosis of MyXTTS; see the package around it.";
  module.attr("__version__") = myxtts::program_version();
  nb::set_leak_warnings(false);  // a program may end with batches in its globals
  nb::register_exception_translator(myxtts::translate);
  myxtts::bind_array(module);
  myxtts::bind_batch(module);
  myxtts::bind_feeder(module);
  myxtts::bind_mel(module);
  myxtts::bind_prepare(module);
  myxtts::bind_loop_observer(module);
  module.def("device_count", &myxtts::device_count, "GPUs that can be used.");
}
