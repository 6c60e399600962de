#include "python/held_batch.h"

#include "base/error.h"
#include "python/without_gil.h"

#include <algorithm>
#include <new>
#include <string>

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

namespace nb = nanobind;

namespace myxtts {
namespace {

// The default stream by its three names; the stream of each thread is in order with it anyway.
bool is_default_stream(StreamHandle stream) { return reinterpret_cast<uintptr_t>(stream) <= 1; }
bool is_per_thread(StreamHandle stream) { return reinterpret_cast<uintptr_t>(stream) == 2; }

const Array* find(const HeldBatch& held, const std::string& name) {
  const std::vector<Array>& arrays = held.batch().arrays;
  const auto found = std::ranges::find(arrays, name, &Array::name);
  return found == arrays.end() ? nullptr : &*found;
}

using Held = std::shared_ptr<HeldBatch>;

SharedArray get_item(const Held& self, const std::string& name) {
  const Array* const array = find(*self, name);
  if (array == nullptr) throw nb::key_error(name.c_str());
  return share(self, *array);
}

SharedArray get_attribute(const Held& self, const std::string& name) {
  const Array* const array = find(*self, name);
  if (array == nullptr) throw nb::attribute_error(fmt::format("the batch holds no array '{}'", name).c_str());
  return share(self, *array);
}

std::vector<std::string> names_of(const Held& self) {
  std::vector<std::string> names;
  for (const Array& array : self->batch().arrays) names.push_back(array.name);
  return names;
}

std::vector<std::optional<std::string>> ids_of(const Held& self) {
  std::vector<std::optional<std::string>> ids;
  for (const uint32_t clip : self->batch().clips) {
    ids.push_back(clip == no_clip ? std::nullopt : std::optional(self->corpus().clip(clip).id));
  }
  return ids;
}

nb::dict lengths_of(const Held& self) {
  nb::list tokens, frames, seconds;
  for (const RowLength& row : self->batch().lengths) {
    tokens.append(row.tokens), frames.append(row.mel_frames), seconds.append(row.seconds);
  }
  nb::dict lengths;
  lengths["tokens"] = tokens, lengths["mel_frames"] = frames, lengths["seconds"] = seconds;
  return lengths;
}

nb::list replaced_of(const Held& self) {
  nb::list replaced;
  for (const BadClip& bad : self->batch().replaced) {
    nb::dict one;
    one["id"] = bad.id, one["by"] = bad.replaced_by, one["path"] = bad.path.string(), one["reason"] = bad.reason;
    replaced.append(one);
  }
  return replaced;
}

std::string describe(const Held& self) {
  std::string arrays;
  for (const Array& array : self->batch().arrays) {
    arrays += fmt::format(", {}[{}]", array.name, fmt::join(array.dims, ", "));
  }
  return fmt::format("Batch(epoch={}, index={}{})", self->batch().epoch, self->batch().index, arrays);
}

}  // namespace

HeldBatch::HeldBatch(BatchLease lease, std::shared_ptr<const PlannedCorpus> planned)
    : planned_(std::move(planned)),
      lease_(std::move(lease)),
      process_(::getpid()),
      device_(lease_->arrays.front().device) {}

HeldBatch::~HeldBatch() {
  if (::getpid() != process_) {
    new (std::nothrow) BatchLease(std::move(lease_));  // kept for ever
    return;
  }
  try {
    give_back();
  } catch (const Error&) {  // an error of the device shows at the next call
  }
}

void HeldBatch::give_back() {
  if (device_ < 0) {
    lease_.reset();
    return;
  }
  const KeepCurrentDevice keep(device_);
  for (const User& user : users_) {
    if (is_per_thread(user.stream)) continue;
    user.event->record(user.stream);
    user.event->hold_up(nullptr);
  }
  lease_.reset();
}

void HeldBatch::make_ready_on(StreamHandle stream) const {
  if (device_ < 0 || is_default_stream(stream)) return;
  const std::lock_guard lock(mutex_);
  if (std::ranges::find(users_, stream, &User::stream) != users_.end()) return;
  const KeepCurrentDevice keep(device_);
  auto event = std::make_unique<DeviceEvent>(device_);
  event->record(nullptr);
  event->hold_up(stream);
  users_.push_back({stream, std::move(event)});
}

std::shared_ptr<HeldBatch> HeldBatch::on_host() const {
  return std::make_shared<HeldBatch>(copy_to_host(*lease_), planned_);
}

SharedArray share(const std::shared_ptr<HeldBatch>& held, const Array& array) {
  return {array, held, [held](StreamHandle stream) { held->make_ready_on(stream); }};
}

void bind_batch(nb::module_& module) {
  nb::class_<HeldBatch>(
      module, "Batch",
      "A batch: named arrays in a static shape, by attribute (batch.mel) or as a mapping (batch[\"mel\"]), and what "
      "is\n"
      "known of its rows. It, its arrays and all that is made of them without a copy hold a place of the loader's\n"
      "ring; the place is used again when the last of them is gone, and never before.")
      .def("__getitem__", get_item, nb::arg("name"))
      .def("__getattr__", get_attribute, nb::arg("name"))
      .def("__contains__", [](const Held& self, const std::string& name) { return find(*self, name) != nullptr; })
      .def("__len__", [](const Held& self) { return self->batch().arrays.size(); })
      .def(
          "__iter__", [](const Held& self) { return nb::iter(nb::cast(names_of(self))); },
          nb::sig("def __iter__(self) -> collections.abc.Iterator[str]"))
      .def("keys", names_of, "Names of the arrays, in the order in which they were asked for.")
      .def(
          "items",
          [](const Held& self) {
            nb::list items;
            for (const Array& array : self->batch().arrays)
              items.append(nb::make_tuple(array.name, share(self, array)));
            return items;
          },
          nb::sig("def items(self) -> list[tuple[str, Array]]"), "Names and arrays.")
      .def(
          "cpu", [](const Held& self) { return self->on_host(); }, nb::call_guard<WithoutGil>(),
          "A copy in host memory of its own. It holds no place of the ring: keep as many as you like.")
      .def_prop_ro(
          "epoch", [](const Held& self) { return self->batch().epoch; }, "Epoch that it belongs to, from 0.")
      .def_prop_ro(
          "index", [](const Held& self) { return self->batch().index; }, "Number in the epoch, from 0.")
      .def_prop_ro(
          "shape", [](const Held& self) { return self->batch().shape; },
          "Which of the loader's shapes it has: a captured step is replayed by this number.")
      .def_prop_ro(
          "seconds", [](const Held& self) { return self->batch().seconds; }, "Seconds of audio.")
      .def_prop_ro("ids", ids_of, "The clip of each row; None for an empty row, as validation may have.")
      .def_prop_ro("lengths", lengths_of, nb::sig("def lengths(self) -> dict[str, list]"),
                   "What is valid of each row, on the host: tokens, mel_frames and seconds.")
      .def_prop_ro("replaced", replaced_of, nb::sig("def replaced(self) -> list[dict[str, str]]"),
                   "Clips that could not be read, and which took their places.")
      .def(
          "hash", [](const Held& self) { return fmt::format("{:016x}", copy_to_host(self->batch())->hash()); },
          nb::call_guard<WithoutGil>(), "64-bit content hash of all arrays, in hex, as `myxtts batches` prints it.")
      .def("__repr__", describe);
}

}  // namespace myxtts
