#include "fallback.h"

#include "simnpu.h"

#include <ATen/core/List.h>

#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace simnpu {
namespace {

using c10::IValue;

// Operators to which torch itself lets CPU tensors come beside tensors of a device.
const std::unordered_set<std::string> kTakesCpuTensors = {
    "aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_", "aten::_unsafe_index", "aten::_unsafe_index_put",
    "aten::set_", "aten::_amp_update_scale_", "aten::_foreach_copy_", "aten::_ctc_loss", "aten::_ctc_loss_backward",
    "aten::_pack_padded_sequence", "aten::_pack_padded_sequence_backward", "aten::_foreach_addcdiv_", "aten::_foreach_addcmul_",
    "aten::_foreach_addcdiv", "aten::_foreach_addcmul"};

// What the schema says, read once per operator: this cache is what makes the way over the CPU fast.
struct Schema {
  size_t arguments = 0;
  size_t returns = 0;
  int generator = -1;              // position of the Generator? argument
  bool takes_cpu_tensors = false;
  bool class_indices = false;      // the NPU takes int32 class indices, the CPU's kernel only int64
  std::vector<bool> written;       // by argument
  std::vector<int> returns_argument;  // by return: the argument that it is, or -1
};

int argument_returned(const c10::FunctionSchema& schema, const c10::Argument& result) {
  if (!result.alias_info() || !result.alias_info()->isWrite()) return -1;
  for (size_t i = 0; i < schema.arguments().size(); i++) {
    const auto* alias = schema.arguments()[i].alias_info();
    if (!alias || !alias->isWrite()) continue;
    for (const auto& symbol : alias->beforeSets())
      if (result.alias_info()->beforeSets().count(symbol)) return static_cast<int>(i);
  }
  return -1;
}

Schema read_schema(const c10::FunctionSchema& schema) {
  Schema read;
  read.arguments = schema.arguments().size();
  read.returns = schema.returns().size();
  for (size_t i = 0; i < read.arguments; i++) {
    const auto& argument = schema.arguments()[i];
    read.written.push_back(argument.alias_info() && argument.alias_info()->isWrite());
    auto type = argument.type();
    if (auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
    if (type->kind() == c10::TypeKind::GeneratorType) read.generator = static_cast<int>(i);
  }
  for (const auto& result : schema.returns()) read.returns_argument.push_back(argument_returned(schema, result));
  read.takes_cpu_tensors = kTakesCpuTensors.count(schema.name()) > 0;
  read.class_indices = schema.name().rfind("aten::nll_loss", 0) == 0;
  return read;
}

const Schema& schema_of(const c10::OperatorHandle& op) {
  static thread_local std::unordered_map<const void*, Schema> known;
  auto found = known.find(&op.schema());
  if (found == known.end()) found = known.emplace(&op.schema(), read_schema(op.schema())).first;
  return found->second;
}

struct Pair {
  at::Tensor npu;
  at::Tensor alias;
  bool written;
};

// One call on its way over the CPU.
class Crossing {
 public:
  Crossing(const c10::OperatorHandle& op, const Schema& schema) : op_(op), schema_(schema) {}

  void arguments_to_cpu(torch::jit::Stack* stack, size_t base) {
    for (size_t i = 0; i < schema_.arguments; i++) argument_to_cpu((*stack)[base + i], i);
    if (device_ < 0) device_ = current_device;
    if (cpu_tensor_seen_ && !pairs_.empty() && !schema_.takes_cpu_tensors) refuse_mixed("cpu");
    if (schema_.generator >= 0) {
      IValue& generator = (*stack)[base + schema_.generator];
      if (generator.isNone()) generator = IValue(cpu_generator_of(default_generator(device_)));
    }
  }

  // Out= arguments and in-place operators may have been resized, or given another storage.
  void changes_to_npu() {
    for (auto& pair : pairs_) {
      auto* npu = pair.npu.unsafeGetTensorImpl();
      auto* alias = pair.alias.unsafeGetTensorImpl();
      if (!alias->has_storage()) continue;
      auto* npu_storage = npu->storage().unsafeGetStorageImpl();
      auto* cpu_storage = alias->storage().unsafeGetStorageImpl();
      if (auto* owned = cpu_storage_of(npu_storage)) {
        if (cpu_storage != owned)
          npu->set_storage_keep_dtype(c10::Storage(wrap_storage(cpu_storage, device_)));
        else if (
            cpu_storage->nbytes() != npu_storage->nbytes() ||
            cpu_storage->_mutable_data_ptr_no_checks().get() != npu_storage->_mutable_data_ptr_no_checks().get())
          follow_resize(npu_storage);
      }
      if (npu->sizes() != alias->sizes() || npu->strides() != alias->strides() || npu->storage_offset() != alias->storage_offset()) {
        npu->set_storage_offset(alias->storage_offset());
        npu->set_sizes_and_strides(alias->sizes(), alias->strides());
      }
      if (pair.written && rules.saturates) saturate(pair.alias, device_);
    }
  }

  void result_to_npu(IValue& value) {
    if (value.isTensor()) {
      value = IValue(to_npu(value.toTensor()));
    } else if (value.isTensorList()) {
      auto tensors = value.toTensorVector();
      for (auto& tensor : tensors) tensor = to_npu(tensor);
      value = IValue(std::move(tensors));
    }
  }

 private:
  void argument_to_cpu(IValue& value, size_t position) {
    if (value.isTensor()) {
      at::Tensor alias = to_cpu(value.toTensor(), schema_.written[position]);
      if (schema_.class_indices && position > 0 && alias.defined() && alias.scalar_type() == at::kInt) alias = alias.to(at::kLong);
      value = IValue(std::move(alias));
    } else if (value.isTensorList()) {
      auto tensors = value.toTensorVector();
      for (auto& tensor : tensors) tensor = to_cpu(tensor, schema_.written[position]);
      value = IValue(std::move(tensors));
    } else if (value.isList()) {
      optional_tensors_to_cpu(value);
    } else if (value.isDevice()) {
      auto device = value.toDevice();
      if (device.type() != kNpu) return;
      if (device_ < 0) device_ = checked_device(device.index());
      value = IValue(c10::Device(c10::kCPU));
    } else if (value.isGenerator()) {
      auto generator = value.toGenerator();
      if (generator.device().type() == kNpu) value = IValue(cpu_generator_of(generator));
    }
  }

  void optional_tensors_to_cpu(IValue& value) {
    auto elements = value.toListRef();
    bool any = false;
    for (const auto& element : elements) any |= element.isTensor();
    if (!any) return;
    c10::List<std::optional<at::Tensor>> converted;
    converted.reserve(elements.size());
    for (const auto& element : elements) {
      if (element.isTensor())
        converted.push_back(to_cpu(element.toTensor(), false));
      else
        converted.push_back(std::nullopt);
    }
    value = IValue(std::move(converted));
  }

  at::Tensor to_cpu(const at::Tensor& tensor, bool written) {
    if (!tensor.defined()) return tensor;
    auto device = tensor.device();
    if (device.type() != kNpu) {
      if (device.type() == c10::kCPU && tensor.dim() > 0) cpu_tensor_seen_ = true;
      return tensor;
    }
    if (device_ < 0)
      device_ = device.index();
    else if (device_ != device.index())
      refuse_mixed("npu:" + std::to_string(device.index()));
    if (tensor.layout() != c10::kStrided) return tensor;
    if (C10_UNLIKELY(!rules.bfloat16 && tensor.scalar_type() == at::kBFloat16)) refuse_bfloat16();
    pairs_.push_back({tensor, to_alias(tensor), written});
    return pairs_.back().alias;
  }

  at::Tensor to_npu(const at::Tensor& result) {
    if (!result.defined() || result.device().type() != c10::kCPU || result.layout() != c10::kStrided ||
        !result.unsafeGetTensorImpl()->has_storage())
      return result;
    at::Tensor cpu = result;
    auto* storage = cpu.storage().unsafeGetStorageImpl();
    for (auto& pair : pairs_) {
      if (pair.alias.is_same(cpu)) return pair.npu;
      // A view of an argument stays a view of it on the npu side.
      if (pair.alias.unsafeGetTensorImpl()->storage().unsafeGetStorageImpl() == storage) {
        auto* npu_storage = pair.npu.unsafeGetTensorImpl()->storage().unsafeGetStorageImpl();
        return wrap_tensor(cpu, c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(npu_storage));
      }
    }
    if (C10_UNLIKELY(cpu.scalar_type() == at::kDouble)) {
      warn_of_float64();
      cpu = cpu.to(at::kFloat);
      storage = cpu.storage().unsafeGetStorageImpl();
    }
    for (auto& [known, npu_storage] : made_)
      if (known == storage) return wrap_tensor(cpu, npu_storage);
    if (rules.saturates) saturate(cpu, device_);
    made_.emplace_back(storage, wrap_storage(storage, device_));
    return wrap_tensor(cpu, made_.back().second);
  }

  [[noreturn]] void refuse_mixed(const std::string& other) {
    TORCH_CHECK(
        false, "Expected all tensors to be on the same device, but found at least two devices, npu:", device_, " and ", other,
        "! (when checking arguments of ", op_.schema().name(), ")");
  }

  [[noreturn]] void refuse_bfloat16() {
    TORCH_CHECK(
        false,
        driver_error(
            op_.schema().name(), 161002, "The operator has no kernel for this type.",
            "EZ1001: DT_BFLOAT16 is not in the list of types that this chip computes with; use float16 or float32"));
  }

  const c10::OperatorHandle& op_;
  const Schema& schema_;
  c10::SmallVector<Pair, 8> pairs_;
  c10::SmallVector<std::pair<c10::StorageImpl*, c10::intrusive_ptr<c10::StorageImpl>>, 4> made_;
  int device_ = -1;
  bool cpu_tensor_seen_ = false;
};

}  // namespace

void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const Schema& schema = schema_of(op);
  size_t base = stack->size() - schema.arguments;
  c10::SmallVector<IValue, 2> returned;  // the npu arguments that the operator returns
  for (int argument : schema.returns_argument)
    if (argument >= 0) returned.push_back((*stack)[base + argument]);

  Crossing crossing(op, schema);
  crossing.arguments_to_cpu(stack, base);
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  crossing.changes_to_npu();

  base = stack->size() - schema.returns;
  size_t next = 0;
  for (size_t i = 0; i < schema.returns; i++) {
    IValue& value = (*stack)[base + i];
    if (schema.returns_argument[i] >= 0)
      value = returned[next++];
    else
      crossing.result_to_npu(value);
  }
}

}  // namespace simnpu
