// What Python sees of the simulated NPU.
#include "hccl.h"
#include "simnpu.h"

#include <torch/csrc/utils/pybind.h>

#include <map>

namespace {

std::map<std::string, int64_t> memory_counters(int device) {
  auto& memory = simnpu::memory_of(simnpu::checked_device(device));
  return {
      {"allocated", memory.allocated},
      {"allocated_peak", memory.allocated_peak},
      {"allocated_total", memory.allocated_total},
      {"requested", memory.requested},
      {"requested_peak", memory.requested_peak},
      {"reserved", memory.reserved},
      {"reserved_peak", memory.reserved_peak},
      {"allocations", memory.allocations},
      {"frees", memory.frees},
      {"out_of_memory", memory.out_of_memory},
      {"limit", memory.limit},
  };
}

void configure(int devices, int64_t memory_bytes, bool saturates, bool bfloat16, bool two_rings, std::vector<int> cards) {
  TORCH_CHECK(devices >= 0 && devices <= simnpu::kMaxDevices, "at most ", simnpu::kMaxDevices, " simulated NPUs");
  TORCH_CHECK(static_cast<int>(cards.size()) == devices, "a card number for each device");
  simnpu::rules = {devices, memory_bytes, saturates, bfloat16, two_rings, std::move(cards)};
  for (int device = 0; device < devices; device++) simnpu::memory_of(device).limit = memory_bytes;
}

int exchange_device(int device) {
  int before = simnpu::current_device;
  if (device >= 0) simnpu::current_device = simnpu::checked_device(device);
  return before;
}

void set_device(int device) {
  simnpu::check_not_forked();
  simnpu::current_device = simnpu::checked_device(device);
  simnpu::mark_initialized();
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("configure", &configure);
  m.def("register_operators", &simnpu::register_operators);
  m.def(
      "make_hccl",
      [](const c10::intrusive_ptr<c10d::Backend>& gloo, const c10::intrusive_ptr<c10d::Store>& store,
         const std::string& server) -> c10::intrusive_ptr<c10d::Backend> { return c10::make_intrusive<simnpu::Hccl>(gloo, store, server); });
  m.def("device_count", [] { return simnpu::rules.devices; });
  m.def("current_device", [] { return simnpu::current_device; });
  m.def("set_device", &set_device);
  m.def("exchange_device", &exchange_device);
  m.def("initialize", [] {
    simnpu::check_not_forked();
    simnpu::mark_initialized();
  });
  m.def("is_initialized", &simnpu::is_initialized);
  m.def("is_bad_fork", &simnpu::is_bad_fork);
  m.def("memory_counters", &memory_counters);
  m.def("set_memory_limit", [](int device, int64_t bytes) { simnpu::memory_of(simnpu::checked_device(device)).limit = bytes; });
  m.def("release_cached_memory", [](int device) { simnpu::release_cached_memory(simnpu::checked_device(device)); });
  m.def("reset_peak_memory", [](int device) { simnpu::reset_peak_memory(simnpu::checked_device(device)); });
  m.def("default_generator", [](int device) { return simnpu::default_generator(device); });
  m.def("cpu_alias", [](const at::Tensor& tensor) { return simnpu::to_alias(tensor); });
  m.def("overflow_flag", [](int device) { return simnpu::overflow_flag(simnpu::checked_device(device)); });
  m.def("clear_overflow_flag", [](int device) { simnpu::clear_overflow_flag(simnpu::checked_device(device)); });
  m.def("arm_fault", [](int point, int blow, const std::string& text) {
    simnpu::arm_fault(static_cast<simnpu::Point>(point), static_cast<simnpu::Blow>(blow), text);
  });
  m.def("driver_error", &simnpu::driver_error);
  m.def("hccl_error", &simnpu::hccl_error);
}
