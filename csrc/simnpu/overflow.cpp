// fp16 arithmetic of a chip that saturates: overflow becomes the largest finite number, NaN becomes 0, a flag is raised.
#include "simnpu.h"

#include <ATen/ops/isfinite.h>
#include <ATen/ops/nan_to_num.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace simnpu {
namespace {
constexpr double kLargestHalf = 65504.0;
std::atomic<bool> flags[kMaxDevices];
}  // namespace

void saturate(const at::Tensor& cpu, int device) {
  if (cpu.scalar_type() != at::kHalf || cpu.numel() == 0) return;
  // Below autograd: this is part of a kernel.
  c10::impl::ExcludeDispatchKeyGuard below(c10::autograd_dispatch_keyset_with_ADInplaceOrView);
  if (at::isfinite(cpu).all().item<bool>()) return;
  flags[device] = true;
  at::Tensor target = cpu;
  at::nan_to_num_(target, 0.0, kLargestHalf, -kLargestHalf);
}

bool overflow_flag(int device) {
  return flags[device];
}

void clear_overflow_flag(int device) {
  flags[device] = false;
}

}  // namespace simnpu
