// Devices that are numbers, streams that are numbers, events that are clock readings, generators that are the CPU's.
#include "simnpu.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <pthread.h>

#include <chrono>
#include <cstring>
#include <vector>

namespace simnpu {

Rules rules;
thread_local int current_device = 0;

namespace {

std::atomic<bool> initialized{false};
std::atomic<bool> bad_fork{false};

// A real NPU's context does not survive a fork; the parent's tensors are of no use to the child.
const int fork_watch = pthread_atfork(nullptr, nullptr, [] {
  if (initialized) bad_fork = true;
});

}  // namespace

bool is_initialized() {
  return initialized && !bad_fork;
}

bool is_bad_fork() {
  return bad_fork;
}

void mark_initialized() {
  initialized.store(true, std::memory_order_relaxed);
}

void check_not_forked() {
  TORCH_CHECK(
      C10_LIKELY(!bad_fork.load(std::memory_order_relaxed)),
      "Cannot re-initialize NPU in forked subprocess. To use NPU with multiprocessing, you must use the 'spawn' start method");
}

int checked_device(int index) {
  if (index == -1) return current_device;
  TORCH_CHECK(
      index >= 0 && index < rules.devices,
      driver_error(
          "aclrtSetDevice(" + std::to_string(index) + ")", 107001, "Invalid device ID. Check whether the device ID is valid.",
          "EE1001: device " + std::to_string(index) + " was asked for, and the valid device range is [0, " + std::to_string(rules.devices) + ")"));
  return index;
}

namespace {

struct EventTime {
  std::chrono::steady_clock::time_point at;
};

thread_local int64_t current_stream_id[kMaxDevices] = {0};
std::atomic<int64_t> next_stream_id{1};

// Everything is done when a call returns, so there is nothing to wait for.
struct NpuGuard final : c10::impl::DeviceGuardImplInterface {
  static constexpr c10::DeviceType static_type = kNpu;
  NpuGuard() = default;
  explicit NpuGuard(c10::DeviceType) {}

  static int index_of(c10::Device device) {
    return device.index() < 0 ? current_device : device.index();
  }
  static c10::Stream stream(int device, int64_t id) {
    return c10::Stream(c10::Stream::UNSAFE, c10::Device(kNpu, static_cast<c10::DeviceIndex>(device)), id);
  }

  c10::DeviceType type() const override {
    return kNpu;
  }
  c10::Device exchangeDevice(c10::Device device) const override {
    c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  c10::Device getDevice() const override {
    return {kNpu, static_cast<c10::DeviceIndex>(current_device)};
  }
  void setDevice(c10::Device device) const override {
    if (device.index() >= 0) current_device = checked_device(device.index());
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.index() >= 0) current_device = device.index();
  }
  c10::Stream getStream(c10::Device device) const override {
    int index = index_of(device);
    return stream(index, current_stream_id[index]);
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return stream(index_of(device), 0);
  }
  c10::Stream getNewStream(c10::Device device, int = 0) const override {
    return stream(index_of(device), next_stream_id++);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool = false) const override {
    return getNewStream(device, 0);
  }
  c10::Stream exchangeStream(c10::Stream to) const override {
    int index = to.device_index();
    c10::Stream before = stream(index, current_stream_id[index]);
    current_stream_id[index] = to.id();
    return before;
  }
  void* getStreamNativeHandle(const c10::Stream of) const override {
    constexpr intptr_t kFirstHandle = 0x1000;
    return reinterpret_cast<void*>(kFirstHandle + of.id());
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    delete static_cast<EventTime*>(event);
  }
  void record(void** event, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag) const override {
    if (!*event) *event = new EventTime;
    static_cast<EventTime*>(*event)->at = std::chrono::steady_clock::now();
  }
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override {
    return true;
  }
  c10::DeviceIndex deviceCount() const noexcept override {
    return static_cast<c10::DeviceIndex>(rules.devices);
  }
  bool queryStream(const c10::Stream&) const override {
    return true;
  }
  void synchronizeStream(const c10::Stream&) const override {}
  void synchronizeEvent(void*) const override {}
  void synchronizeDevice(const c10::DeviceIndex) const override {}
  void recordDataPtrOnStream(const c10::DataPtr&, const c10::Stream&) const override {}
  double elapsedTime(void* from, void* to, const c10::DeviceIndex) const override {
    auto span = static_cast<EventTime*>(to)->at - static_cast<EventTime*>(from)->at;
    return std::chrono::duration<double, std::milli>(span).count();
  }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, NpuGuard);

// A Mersenne twister like the CPU's, in an npu-typed shell: the same seed draws the same numbers as on the CPU.
struct NpuGenerator final : c10::GeneratorImpl {
  at::Generator inner;

  explicit NpuGenerator(c10::DeviceIndex device)
      : c10::GeneratorImpl(c10::Device(kNpu, device), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        inner(at::detail::createCPUGenerator()) {}

  void set_current_seed(uint64_t seed) override {
    inner.set_current_seed(seed);
  }
  void set_offset(uint64_t) override {}
  uint64_t get_offset() const override {
    return 0;
  }
  uint64_t current_seed() const override {
    return inner.current_seed();
  }
  uint64_t seed() override {
    return inner.seed();
  }
  void set_state(const c10::TensorImpl& state) override {
    inner.unsafeGetGeneratorImpl()->set_state(state);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    return inner.unsafeGetGeneratorImpl()->get_state();
  }
  NpuGenerator* clone_impl() const override {
    auto* copy = new NpuGenerator(device().index());
    copy->inner = inner.clone();
    return copy;
  }
};

struct NpuHooks final : at::PrivateUse1HooksInterface {
  void init() const override {}
  bool isBuilt() const override {
    return true;
  }
  bool isAvailable() const override {
    return rules.devices > 0;
  }
  bool hasPrimaryContext(c10::DeviceIndex) const override {
    return true;
  }
  c10::DeviceIndex deviceCount() const override {
    return static_cast<c10::DeviceIndex>(rules.devices);
  }
  void setCurrentDevice(c10::DeviceIndex device) const override {
    current_device = checked_device(device);
  }
  c10::DeviceIndex getCurrentDevice() const override {
    return static_cast<c10::DeviceIndex>(current_device);
  }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    auto before = getCurrentDevice();
    if (device >= 0) current_device = checked_device(device);
    return before;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
    return exchangeDevice(device);
  }
  at::Allocator* getPinnedMemoryAllocator() const override {
    return pinned_allocator();
  }
  bool isPinnedPtr(const void* pointer) const override {
    return is_pinned(pointer);
  }
  at::Device getDeviceFromPtr(void*) const override {
    return {kNpu, static_cast<c10::DeviceIndex>(current_device)};
  }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override {
    return default_generator(device);
  }
  at::Generator getNewGenerator(c10::DeviceIndex device) const override {
    return at::make_generator<NpuGenerator>(static_cast<c10::DeviceIndex>(checked_device(device)));
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    auto* npu = storage.unsafeGetStorageImpl();
    auto* cpu = cpu_storage_of(npu);
    TORCH_CHECK(cpu, "cannot resize an NPU storage over memory that is not the NPU's own");
    auto memory = new_cpu_storage(bytes);
    size_t kept = std::min(bytes, cpu->nbytes());
    if (kept) memcpy(memory->_mutable_data_ptr_no_checks().mutable_get(), cpu->_mutable_data_ptr_no_checks().get(), kept);
    cpu->set_data_ptr_noswap(std::move(memory->_mutable_data_ptr_no_checks()));
    cpu->set_nbytes(bytes);
    follow_resize(npu);
  }
};
const bool hooks_registered = [] {
  at::RegisterPrivateUse1HooksInterface(new NpuHooks);
  return true;
}();

}  // namespace

at::Generator cpu_generator_of(const at::Generator& npu) {
  return static_cast<NpuGenerator*>(npu.unsafeGetGeneratorImpl())->inner;
}

const at::Generator& default_generator(int device) {
  static const std::vector<at::Generator> generators = [] {
    std::vector<at::Generator> made;
    for (int index = 0; index < kMaxDevices; index++) made.push_back(at::make_generator<NpuGenerator>(static_cast<c10::DeviceIndex>(index)));
    return made;
  }();
  return generators[checked_device(device)];
}

}  // namespace simnpu
