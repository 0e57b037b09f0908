// What the device runtime, the operators and the process group share.
//
// A simulated NPU is host memory with a device number. An npu storage owns a CPU storage over the same bytes, so every
// operator can run the CPU's own kernel on a CPU tensor that aliases the npu tensor: no copy, and the CPU's exact result.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/StorageImpl.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace simnpu {

constexpr auto kNpu = c10::DeviceType::PrivateUse1;
constexpr int kMaxDevices = 64;

// What the simulated chip is like. Set once, before the first tensor.
struct Rules {
  int devices = 0;
  int64_t memory_bytes = 0;  // of each device
  bool saturates = false;    // fp16 overflow gives 65504 and NaN gives 0, instead of inf and NaN
  bool bfloat16 = true;
  bool two_rings = false;  // cards 0-3 and 4-7 are separate rings (910A)
  std::vector<int> cards;  // the server's number of each device that this process sees
};
extern Rules rules;

extern thread_local int current_device;

// `index`, or the current device for -1. Raises the driver's error for a device that does not exist.
int checked_device(int index);
// Raises when this process was forked from one that had already used an NPU.
void check_not_forked();
void mark_initialized();
bool is_initialized();
bool is_bad_fork();

inline bool is_npu(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == kNpu;
}

// ---- memory.cpp
struct Memory {
  std::atomic<int64_t> allocated{0}, allocated_peak{0}, allocated_total{0};
  std::atomic<int64_t> requested{0}, requested_peak{0};
  std::atomic<int64_t> reserved{0}, reserved_peak{0};
  std::atomic<int64_t> allocations{0}, frees{0}, out_of_memory{0};
  std::atomic<int64_t> limit{0};
};
Memory& memory_of(int device);
void release_cached_memory(int device);
void reset_peak_memory(int device);

at::Tensor to_alias(const at::Tensor& npu);           // a CPU tensor over the same bytes
at::Tensor from_cpu(const at::Tensor& cpu, int device);  // an npu tensor that owns the CPU tensor's storage
at::Tensor wrap_tensor(const at::Tensor& cpu, c10::intrusive_ptr<c10::StorageImpl> npu_storage);
c10::intrusive_ptr<c10::StorageImpl> new_cpu_storage(size_t bytes);
c10::intrusive_ptr<c10::StorageImpl> wrap_storage(c10::StorageImpl* cpu, int device);
c10::StorageImpl* cpu_storage_of(c10::StorageImpl* npu);  // null for memory that is not ours
void follow_resize(c10::StorageImpl* npu);                // after its CPU storage got other bytes
at::Allocator* pinned_allocator();
bool is_pinned(const void* pointer);

// ---- device.cpp
at::Generator cpu_generator_of(const at::Generator& npu);
const at::Generator& default_generator(int device);

// ---- overflow.cpp: fp16 on a chip that saturates
void saturate(const at::Tensor& cpu, int device);
bool overflow_flag(int device);
void clear_overflow_flag(int device);

// ---- faults.cpp
enum class Point : int { kNowhere = 0, kCollective = 1, kAllocation = 2 };
enum class Blow : int { kRaise = 0, kOutOfMemory = 1, kHang = 2, kExit = 3 };
extern std::atomic<int> armed_point;
void arm_fault(Point point, Blow blow, std::string text);
void strike(int device);
inline void fault_point(Point here, int device) {
  if (C10_UNLIKELY(armed_point.load(std::memory_order_relaxed) == static_cast<int>(here))) strike(device);
}

// ---- errors.cpp: texts in the shape of the driver's and HCCL's
std::string driver_error(const std::string& call, int code, const std::string& meaning, const std::string& detail);
std::string hccl_error(const std::string& call, int code, const std::string& cann_code, const std::string& detail);
std::string megabytes(int64_t bytes);

// ---- operators
int register_operators();
void warn_of_float64();  // NPUs do not compute in float64: whatever would be made in it is made in float32
void register_composites();
void register_batch_norm();

}  // namespace simnpu
