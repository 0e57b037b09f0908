// The operators that are not simply the CPU's: making memory, copying between devices, taking over a storage.
#include "fallback.h"
#include "simnpu.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ops/_to_copy_native.h>
#include <ATen/ops/arange_native.h>
#include <ATen/ops/eye_native.h>
#include <ATen/ops/scalar_tensor.h>
#include <torch/library.h>

#include <memory>
#include <unordered_set>
#include <vector>

namespace simnpu {
namespace {

using OptionalType = std::optional<at::ScalarType>;
using OptionalLayout = std::optional<c10::Layout>;
using OptionalDevice = std::optional<c10::Device>;
using OptionalFormat = std::optional<at::MemoryFormat>;

int index_of(const OptionalDevice& device) {
  return device ? checked_device(device->index()) : current_device;
}

void check_not_pinned(const std::optional<bool>& pin) {
  TORCH_CHECK(!pin.value_or(false), "Only dense CPU tensors can be pinned");
}

// The type that a factory makes. Memory of no bytes keeps its type: it is made to be given a storage that has one already,
// as torch.load does.
OptionalType made_type(OptionalType type, c10::IntArrayRef sizes) {
  if (type.value_or(at::typeMetaToScalarType(at::get_default_dtype())) != at::kDouble || c10::multiply_integers(sizes) == 0) return type;
  warn_of_float64();
  return at::kFloat;
}

at::Tensor empty(c10::IntArrayRef sizes, OptionalType type, OptionalLayout layout, OptionalDevice device, std::optional<bool> pin, OptionalFormat format) {
  check_not_pinned(pin);
  int index = index_of(device);
  type = made_type(type, sizes);
  return from_cpu(at::detail::empty_cpu(sizes, type, layout, c10::Device(c10::kCPU), false, format), index);
}

at::Tensor empty_strided(
    c10::IntArrayRef sizes, c10::IntArrayRef strides, OptionalType type, OptionalLayout layout, OptionalDevice device, std::optional<bool> pin) {
  check_not_pinned(pin);
  int index = index_of(device);
  type = made_type(type, sizes);
  return from_cpu(at::detail::empty_strided_cpu(sizes, strides, type, layout, c10::Device(c10::kCPU), false), index);
}

// These make memory of no bytes first, and resize it.
at::Tensor arange(
    const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, OptionalType type, OptionalLayout layout, OptionalDevice device,
    std::optional<bool> pin) {
  bool whole = start.isIntegral(true) && end.isIntegral(true) && step.isIntegral(true);
  if (type || !whole) type = made_type(type, {1});
  return at::native::arange(start, end, step, type, layout, device, pin);
}

at::Tensor arange_from(
    const at::Scalar& start, const at::Scalar& end, OptionalType type, OptionalLayout layout, OptionalDevice device, std::optional<bool> pin) {
  return arange(start, end, 1, type, layout, device, pin);
}

at::Tensor arange_to(const at::Scalar& end, OptionalType type, OptionalLayout layout, OptionalDevice device, std::optional<bool> pin) {
  return arange(0, end, 1, type, layout, device, pin);
}

at::Tensor eye(int64_t rows, int64_t columns, OptionalType type, OptionalLayout layout, OptionalDevice device, std::optional<bool> pin) {
  return at::native::eye(rows, columns, made_type(type, {1}), layout, device, pin);
}

// torch wraps Python numbers in such tensors, on the device of what they meet; as on the CPU they keep all their digits.
at::Tensor scalar_tensor(const at::Scalar& value, OptionalType type, OptionalLayout layout, OptionalDevice device, std::optional<bool> pin) {
  check_not_pinned(pin);
  int index = index_of(device);
  return from_cpu(at::scalar_tensor(value, type, layout, c10::Device(c10::kCPU), false), index);
}

at::Tensor alias_of(const at::Tensor& tensor) {
  return is_npu(tensor) ? to_alias(tensor) : tensor;
}

at::Tensor& copy_(at::Tensor& target, const at::Tensor& source, bool non_blocking) {
  at::Tensor alias = alias_of(target);
  alias.copy_(alias_of(source), non_blocking);
  if (rules.saturates && is_npu(target) && source.scalar_type() != target.scalar_type()) saturate(alias, target.get_device());
  return target;
}

at::Tensor copy_from(const at::Tensor& source, const at::Tensor& target, bool non_blocking) {
  at::Tensor written = target;
  copy_(written, source, non_blocking);
  return target;
}

at::Tensor copy_from_and_resize(const at::Tensor& source, const at::Tensor& target) {
  target.resize_(source.sizes());
  return copy_from(source, target, false);
}

at::Tensor to_copy(
    const at::Tensor& self, OptionalType type, OptionalLayout layout, OptionalDevice device, std::optional<bool> pin, bool non_blocking,
    OptionalFormat format) {
  bool to_npu = device ? device->type() == kNpu : is_npu(self);
  if (to_npu && type.value_or(self.scalar_type()) == at::kDouble) {
    warn_of_float64();
    type = at::kFloat;
  }
  return at::native::_to_copy(self, type, layout, device, pin, non_blocking, format);
}

void record_stream(at::Tensor&, c10::Stream) {}

at::Tensor& set_storage_offset(at::Tensor& result, at::Storage storage, int64_t offset, c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  TORCH_CHECK(
      storage.device() == result.device(), "Attempted to set the storage of a tensor on device \"", result.device(),
      "\" to a storage on different device \"", storage.device(), "\".  This is no longer allowed; the devices must match.");
  auto* implementation = result.unsafeGetTensorImpl();
  implementation->set_storage_keep_dtype(std::move(storage));
  implementation->set_storage_offset(offset);
  if (strides.data() == nullptr || strides.empty())
    implementation->set_sizes_contiguous(sizes);
  else
    implementation->set_sizes_and_strides(sizes, strides);
  return result;
}

at::Tensor& set_storage(at::Tensor& result, at::Storage storage) {
  auto elements = static_cast<int64_t>(storage.nbytes() / result.dtype().itemsize());
  return set_storage_offset(result, std::move(storage), 0, {elements}, {});
}

at::Tensor& set_tensor(at::Tensor& result, const at::Tensor& source) {
  return set_storage_offset(result, source.storage(), source.storage_offset(), source.sizes(), source.strides());
}

at::Tensor& set_nothing(at::Tensor& result) {
  auto nothing = wrap_storage(new_cpu_storage(0).get(), result.device().index());
  return set_storage_offset(result, c10::Storage(std::move(nothing)), 0, {0}, {});
}

// `parameter.data = npu_tensor` keeps the Parameter object (optimizers, tied weights), as it does on CUDA.
bool has_compatible_shallow_copy_type(const at::Tensor& self, const at::Tensor& from) {
  return self.layout() == from.layout() || self.unsafeGetTensorImpl()->has_compatible_shallow_copy_type(from.key_set());
}

// Composite operators whose parts would be chosen by device: the CPU's own choice is the exact one.
bool better_whole(const std::string& name) {
  static const std::unordered_set<std::string> whole = {
      "aten::_convolution", "aten::convolution_backward", "aten::embedding", "aten::native_group_norm", "aten::native_group_norm_backward"};
  return whole.count(name) || name.rfind("aten::_foreach_", 0) == 0 || name.rfind("aten::convolution", 0) == 0;
}

std::vector<std::unique_ptr<torch::Library>> libraries;

}  // namespace

// The real one's own warning, spelling and all.
void warn_of_float64() {
  TORCH_WARN_ONCE("Device do not support double dtype now, dtype cast repalce with float.");
}

int register_operators() {
  auto aten = std::make_unique<torch::Library>(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  std::unordered_set<std::string> own;
  auto add = [&](const char* name, auto&& kernel) {
    aten->impl(name, std::forward<decltype(kernel)>(kernel));
    own.insert(std::string("aten::") + name);
  };
  add("empty.memory_format", TORCH_FN(empty));
  add("empty_strided", TORCH_FN(empty_strided));
  add("arange.start_step", TORCH_FN(arange));
  add("arange.start", TORCH_FN(arange_from));
  add("arange", TORCH_FN(arange_to));
  add("eye.m", TORCH_FN(eye));
  add("scalar_tensor", TORCH_FN(scalar_tensor));
  add("copy_", TORCH_FN(copy_));
  add("_copy_from", TORCH_FN(copy_from));
  add("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  add("_to_copy", TORCH_FN(to_copy));
  add("record_stream", TORCH_FN(record_stream));
  add("set_.source_Storage_storage_offset", TORCH_FN(set_storage_offset));
  add("set_.source_Storage", TORCH_FN(set_storage));
  add("set_.source_Tensor", TORCH_FN(set_tensor));
  add("set_", TORCH_FN(set_nothing));
  add("_has_compatible_shallow_copy_type", TORCH_FN(has_compatible_shallow_copy_type));

  int registered = 0;
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const auto& name : dispatcher.getAllOpNames()) {
    if (name.name.rfind("aten::", 0) != 0) continue;
    std::string full = name.name + (name.overload_name.empty() ? "" : "." + name.overload_name);
    if (own.count(full) || name.name == "aten::is_pinned" || name.name == "aten::_pin_memory") continue;
    auto op = dispatcher.findSchema(name);
    if (!op || op->hasKernelForDispatchKey(c10::DispatchKey::PrivateUse1)) continue;
    bool whole = better_whole(name.name) && op->hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd);
    if (!op->hasKernelForDispatchKey(c10::DispatchKey::CPU) && !whole) continue;
    aten->impl(full.substr(6).c_str(), torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>());
    registered++;
  }
  libraries.push_back(std::move(aten));

  auto everything = std::make_unique<torch::Library>(torch::Library::IMPL, "_", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  everything->fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>());
  libraries.push_back(std::move(everything));

  // A move from the CPU dispatches on the CPU.
  auto cpu = std::make_unique<torch::Library>(torch::Library::IMPL, "aten", c10::DispatchKey::CPU, __FILE__, __LINE__);
  cpu->impl("_to_copy", TORCH_FN(to_copy));
  libraries.push_back(std::move(cpu));
  register_composites();
  register_batch_norm();
  return registered;
}

}  // namespace simnpu
