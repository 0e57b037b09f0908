// Memory of a simulated NPU: host memory, counted the way torch_npu's caching allocator counts.
#include "simnpu.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/TensorImpl.h>

#include <mutex>
#include <set>

namespace simnpu {
namespace {

Memory memories[kMaxDevices];

// torch_npu adds 32 bytes to a request, rounds it up to 512, and takes segments of 2 MiB from the driver.
constexpr int64_t kPadding = 32;
constexpr int64_t kBlock = 512;
constexpr int64_t kSegment = 2 << 20;

int64_t rounded(int64_t bytes) {
  return bytes == 0 ? 0 : (bytes + kPadding + kBlock - 1) / kBlock * kBlock;
}

void raise_to(std::atomic<int64_t>& peak, int64_t value) {
  int64_t seen = peak.load();
  while (seen < value && !peak.compare_exchange_weak(seen, value)) {
  }
}

void refuse(int device, int64_t bytes) {
  Memory& memory = memories[device];
  memory.out_of_memory++;
  int64_t limit = memory.limit, allocated = memory.allocated;
  TORCH_CHECK_WITH(
      OutOfMemoryError, false, "NPU out of memory. Tried to allocate ", megabytes(bytes), " (NPU ", device, "; ", megabytes(limit),
      " total capacity; ", megabytes(allocated), " already allocated; ", megabytes(allocated), " current active; ",
      megabytes(std::max<int64_t>(limit - memory.reserved, 0)), " free; ", megabytes(memory.reserved),
      " reserved in total by PyTorch). This is the limit of the simulated NPU, set by --memory");
}

void charge(int device, int64_t bytes) {
  Memory& memory = memories[device];
  fault_point(Point::kAllocation, device);
  int64_t size = rounded(bytes);
  int64_t now = (memory.allocated += size);
  int64_t limit = memory.limit.load(std::memory_order_relaxed);
  if (limit > 0 && now > limit) {
    memory.allocated -= size;
    refuse(device, bytes);
  }
  memory.allocated_total += size;
  memory.allocations++;
  raise_to(memory.allocated_peak, now);
  raise_to(memory.requested_peak, memory.requested += bytes);
  raise_to(memory.reserved, (now + kSegment - 1) / kSegment * kSegment);
  raise_to(memory.reserved_peak, memory.reserved);
}

void discharge(int device, int64_t bytes) {
  Memory& memory = memories[device];
  memory.allocated -= rounded(bytes);
  memory.requested -= bytes;
  memory.frees++;
}

// Lives as long as the npu storage's pointer, and keeps the CPU storage alive.
struct Ownership {
  c10::intrusive_ptr<c10::StorageImpl> cpu;
  int device;
  int64_t bytes;
};

void release(void* context) {
  auto* ownership = static_cast<Ownership*>(context);
  discharge(ownership->device, ownership->bytes);
  delete ownership;
}

c10::DataPtr own(c10::intrusive_ptr<c10::StorageImpl> cpu, int device) {
  check_not_forked();
  auto bytes = static_cast<int64_t>(cpu->nbytes());
  charge(device, bytes);
  void* data = cpu->_mutable_data_ptr_no_checks().mutable_get();
  return {data, new Ownership{std::move(cpu), device, bytes}, &release, c10::Device(kNpu, static_cast<c10::DeviceIndex>(device))};
}

struct NpuAllocator final : c10::DeviceAllocator {
  c10::DataPtr allocate(size_t bytes) override {
    mark_initialized();
    return own(new_cpu_storage(bytes), current_device);
  }
  void copy_data(void* target, const void* source, size_t bytes) const override {
    default_copy_data(target, source, bytes);
  }
  bool is_simple_data_ptr(const c10::DataPtr&) const override {
    return false;
  }
  bool initialized() override {
    return is_initialized();
  }
  void emptyCache(c10::MempoolId_t = {0, 0}) override {
    for (int device = 0; device < rules.devices; device++) release_cached_memory(device);
  }
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex index) override {
    Memory& memory = memories[checked_device(index)];
    c10::CachingDeviceAllocator::DeviceStats stats;
    auto fill = [](auto& stat, int64_t now, int64_t peak, int64_t total) {
      stat[0].current = now;
      stat[0].peak = peak;
      stat[0].allocated = total;
      stat[0].freed = total - now;
    };
    fill(stats.allocated_bytes, memory.allocated, memory.allocated_peak, memory.allocated_total);
    fill(stats.active_bytes, memory.allocated, memory.allocated_peak, memory.allocated_total);
    fill(stats.requested_bytes, memory.requested, memory.requested_peak, memory.allocated_total);
    fill(stats.reserved_bytes, memory.reserved, memory.reserved_peak, memory.reserved_peak);
    stats.num_ooms = memory.out_of_memory;
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex index) override {
    Memory& memory = memories[checked_device(index)];
    memory.allocated_total = memory.allocated.load();
    memory.allocations = 0;
    memory.frees = 0;
    memory.out_of_memory = 0;
  }
  void resetPeakStats(c10::DeviceIndex index) override {
    reset_peak_memory(checked_device(index));
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex index) override {
    Memory& memory = memories[checked_device(index)];
    return {memory.limit - memory.reserved, memory.limit};
  }
};
NpuAllocator npu_allocator;
REGISTER_ALLOCATOR(c10::DeviceType::PrivateUse1, &npu_allocator);

// The CPU storage under an npu storage; for memory that came from elsewhere, a window on it.
c10::intrusive_ptr<c10::StorageImpl> cpu_storage(c10::StorageImpl* npu) {
  auto& pointer = npu->_mutable_data_ptr_no_checks();
  if (auto* ownership = pointer.cast_context<Ownership>(&release)) return ownership->cpu;
  return c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), npu->nbytes(), c10::DataPtr(pointer.mutable_get(), c10::Device(c10::kCPU)), nullptr, false);
}

at::Tensor like(const at::Tensor& model, c10::Storage storage, c10::DispatchKey key) {
  auto* source = model.unsafeGetTensorImpl();
  auto result = c10::make_intrusive<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(key), source->dtype());
  result->set_storage_offset(source->storage_offset());
  result->set_sizes_and_strides(source->sizes(), source->strides());
  if (source->is_wrapped_number()) result->set_wrapped_number(true);
  if (model.is_conj()) result->_set_conj(true);
  if (model.is_neg()) result->_set_neg(true);
  return at::Tensor(std::move(result));
}

// ---- pinned host memory: ordinary memory that remembers its address range
std::mutex pinned_guard;
std::set<std::pair<uintptr_t, uintptr_t>> pinned_ranges;

struct Pinned {
  c10::DataPtr memory;
  std::pair<uintptr_t, uintptr_t> range;
};

void unpin(void* context) {
  auto* pinned = static_cast<Pinned*>(context);
  {
    std::lock_guard<std::mutex> lock(pinned_guard);
    pinned_ranges.erase(pinned->range);
  }
  delete pinned;
}

struct PinnedAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    size_t size = bytes ? bytes : 1;
    auto memory = c10::GetCPUAllocator()->allocate(size);
    void* data = memory.mutable_get();
    auto begin = reinterpret_cast<uintptr_t>(data);
    std::pair<uintptr_t, uintptr_t> range{begin, begin + size};
    {
      std::lock_guard<std::mutex> lock(pinned_guard);
      pinned_ranges.insert(range);
    }
    return {data, new Pinned{std::move(memory), range}, &unpin, c10::Device(c10::kCPU)};
  }
  void copy_data(void* target, const void* source, size_t bytes) const override {
    default_copy_data(target, source, bytes);
  }
};
PinnedAllocator pinned;

}  // namespace

Memory& memory_of(int device) {
  return memories[device];
}

void release_cached_memory(int device) {
  Memory& memory = memories[device];
  memory.reserved = (memory.allocated + kSegment - 1) / kSegment * kSegment;
}

void reset_peak_memory(int device) {
  Memory& memory = memories[device];
  memory.allocated_peak = memory.allocated.load();
  memory.requested_peak = memory.requested.load();
  memory.reserved_peak = memory.reserved.load();
}

c10::intrusive_ptr<c10::StorageImpl> new_cpu_storage(size_t bytes) {
  auto* allocator = c10::GetCPUAllocator();
  return c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes, allocator->allocate(bytes), allocator, true);
}

c10::intrusive_ptr<c10::StorageImpl> wrap_storage(c10::StorageImpl* cpu, int device) {
  auto counted = c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(cpu);
  size_t bytes = cpu->nbytes();
  return c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), bytes, own(std::move(counted), device), &npu_allocator, true);
}

c10::StorageImpl* cpu_storage_of(c10::StorageImpl* npu) {
  auto* ownership = npu->_mutable_data_ptr_no_checks().cast_context<Ownership>(&release);
  return ownership ? ownership->cpu.get() : nullptr;
}

void follow_resize(c10::StorageImpl* npu) {
  auto& pointer = npu->_mutable_data_ptr_no_checks();
  auto* ownership = pointer.cast_context<Ownership>(&release);
  if (!ownership) return;
  void* data = ownership->cpu->_mutable_data_ptr_no_checks().mutable_get();
  auto bytes = static_cast<int64_t>(ownership->cpu->nbytes());
  if (bytes != ownership->bytes) {
    discharge(ownership->device, ownership->bytes);
    ownership->bytes = 0;  // should the new size be refused, nothing is counted twice
    charge(ownership->device, bytes);
    ownership->bytes = bytes;
    npu->set_nbytes(bytes);
  }
  if (data != pointer.get()) {
    auto device = pointer.device();
    pointer.release_context();
    pointer = c10::DataPtr(data, ownership, &release, device);
  }
}

at::Tensor to_alias(const at::Tensor& npu) {
  check_not_forked();
  auto* source = npu.unsafeGetTensorImpl();
  if (!source->has_storage()) return npu;
  return like(npu, c10::Storage(cpu_storage(source->storage().unsafeGetStorageImpl())), c10::DispatchKey::CPU);
}

at::Tensor wrap_tensor(const at::Tensor& cpu, c10::intrusive_ptr<c10::StorageImpl> npu_storage) {
  return like(cpu, c10::Storage(std::move(npu_storage)), c10::DispatchKey::PrivateUse1);
}

at::Tensor from_cpu(const at::Tensor& cpu, int device) {
  mark_initialized();
  return wrap_tensor(cpu, wrap_storage(cpu.storage().unsafeGetStorageImpl(), device));
}

at::Allocator* pinned_allocator() {
  return &pinned;
}

bool is_pinned(const void* pointer) {
  std::lock_guard<std::mutex> lock(pinned_guard);
  auto address = reinterpret_cast<uintptr_t>(pointer);
  auto after = pinned_ranges.upper_bound({address, UINTPTR_MAX});
  if (after == pinned_ranges.begin()) return false;
  --after;
  return address >= after->first && address < after->second;
}

}  // namespace simnpu
