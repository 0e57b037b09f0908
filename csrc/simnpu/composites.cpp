// Composite operators that choose their parts by the device's kind: for any device but a CPU they take fused kernels, or
// another order of arithmetic. Here the whole operator runs on CPU aliases, with the CPU's own autograd graph between two
// crossings, so forward, backward and random draws are the CPU's.
#include "simnpu.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <memory>
#include <mutex>

namespace simnpu {
namespace {

using c10::IValue;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct ToCpu : torch::autograd::Function<ToCpu> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& npu) {
    context->saved_data["device"] = npu.get_device();
    return to_alias(npu);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    if (!gradients[0].defined()) return {at::Tensor()};
    return {from_cpu(gradients[0], static_cast<int>(context->saved_data["device"].toInt()))};
  }
};

struct ToNpu : torch::autograd::Function<ToNpu> {
  static at::Tensor forward(AutogradContext*, const at::Tensor& cpu, int64_t device) {
    return from_cpu(cpu, static_cast<int>(device));
  }
  static variable_list backward(AutogradContext*, variable_list gradients) {
    if (!gradients[0].defined()) return {at::Tensor(), at::Tensor()};
    return {to_alias(gradients[0]), at::Tensor()};
  }
};

// Draws inside the operator come from the NPU's generator: its state is lent to the CPU's default one meanwhile.
class LentGenerator {
 public:
  explicit LentGenerator(int device) : npu_(cpu_generator_of(default_generator(device))), cpu_(at::detail::getDefaultCPUGenerator()) {
    saved_ = cpu_.get_state();
    cpu_.set_state(npu_.get_state());
  }
  ~LentGenerator() {
    npu_.set_state(cpu_.get_state());
    cpu_.set_state(saved_);
  }
  LentGenerator(const LentGenerator&) = delete;
  LentGenerator& operator=(const LentGenerator&) = delete;

 private:
  at::Generator npu_;
  at::Generator cpu_;
  at::Tensor saved_;
};

class Crossing {
 public:
  IValue to_cpu(const IValue& value) {
    if (value.isTensor()) return IValue(tensor_to_cpu(value.toTensor()));
    if (value.isTensorList()) {
      auto tensors = value.toTensorVector();
      for (auto& tensor : tensors) tensor = tensor_to_cpu(tensor);
      return IValue(std::move(tensors));
    }
    if (value.isDevice() && value.toDevice().type() == kNpu) return IValue(c10::Device(c10::kCPU));
    return value;
  }

  IValue to_npu(const IValue& value) {
    if (!value.isTensor() || !value.toTensor().defined() || !value.toTensor().is_cpu()) return value;
    for (auto& [npu, alias] : pairs_)
      if (alias.is_same(value.toTensor())) return IValue(npu);  // returned as it came, as dropout does in evaluation
    return IValue(ToNpu::apply(value.toTensor(), device_));
  }

  int device() const {
    return device_ < 0 ? current_device : static_cast<int>(device_);
  }

 private:
  at::Tensor tensor_to_cpu(const at::Tensor& tensor) {
    if (!is_npu(tensor)) return tensor;
    if (device_ < 0) device_ = tensor.get_device();
    TORCH_CHECK(
        device_ == tensor.get_device(), "Expected all tensors to be on the same device, but found at least two devices, npu:", device_, " and ",
        tensor.device(), "!");
    pairs_.emplace_back(tensor, ToCpu::apply(tensor));
    return pairs_.back().second;
  }

  c10::SmallVector<std::pair<at::Tensor, at::Tensor>, 8> pairs_;
  int64_t device_ = -1;
};

bool is_traced(const torch::jit::Stack& stack, size_t base) {
  for (size_t i = base; i < stack.size(); i++) {
    if (!stack[i].isTensor() || !stack[i].toTensor().defined()) continue;
    auto keys = stack[i].toTensor().key_set();
    if (keys.has(c10::DispatchKey::Python) || keys.has(c10::DispatchKey::FuncTorchBatched)) return true;
  }
  return false;
}

void run_whole_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  size_t arguments = op.schema().arguments().size();
  size_t base = stack->size() - arguments;
  // Tensor subclasses and tracers want to see the parts.
  if (is_traced(*stack, base)) {
    op.callBoxedForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd, *stack);
    return;
  }
  Crossing crossing;
  for (size_t i = base; i < stack->size(); i++) (*stack)[i] = crossing.to_cpu((*stack)[i]);
  {
    static std::mutex one_lender;
    std::lock_guard<std::mutex> lock(one_lender);
    LentGenerator lent(crossing.device());
    op.callBoxed(stack);
  }
  size_t results = op.schema().returns().size();
  for (size_t i = stack->size() - results; i < stack->size(); i++) (*stack)[i] = crossing.to_npu((*stack)[i]);
}

std::unique_ptr<torch::Library> below_autograd;
std::unique_ptr<torch::Library> at_autograd;

}  // namespace

void register_composites() {
  constexpr const char* kWhole[] = {
      "lstm.input", "lstm.data", "gru.input", "gru.data", "rnn_tanh.input", "rnn_tanh.data", "rnn_relu.input", "rnn_relu.data",
      "lstm_cell", "gru_cell", "dropout", "scaled_dot_product_attention"};
  below_autograd = std::make_unique<torch::Library>(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  at_autograd = std::make_unique<torch::Library>(torch::Library::IMPL, "aten", c10::DispatchKey::AutogradPrivateUse1, __FILE__, __LINE__);
  for (const char* name : kWhole) {
    below_autograd->impl(name, torch::CppFunction::makeFromBoxedFunction<&run_whole_on_cpu>());
    at_autograd->impl(name, torch::CppFunction::makeFromBoxedFunction<&run_whole_on_cpu>());
  }
}

}  // namespace simnpu
