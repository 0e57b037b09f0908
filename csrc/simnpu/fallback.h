// The boxed kernel behind nearly every operator.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace simnpu {

// Runs the CPU kernel of `op` on CPU tensors over the npu arguments' bytes, and hands the results back as npu tensors.
void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace simnpu
