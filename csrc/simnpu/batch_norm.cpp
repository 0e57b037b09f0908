// The parts of synchronised batch norm, which the CPU does not have. Formulas: Chan et al. 1979 for joining variances; the
// gradient is that of batch norm with the sums taken over all ranks. Statistics are kept in float32.
#include "simnpu.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include <memory>
#include <tuple>

namespace simnpu {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

at::ScalarType statistics_type(const Tensor& input) {
  return input.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

std::vector<int64_t> all_but_channels(const Tensor& input) {
  std::vector<int64_t> dimensions{0};
  for (int64_t dimension = 2; dimension < input.dim(); dimension++) dimensions.push_back(dimension);
  return dimensions;
}

// (C) seen as (1, C, 1, ...), to go with `input`.
Tensor per_channel(const Tensor& values, const Tensor& input) {
  std::vector<int64_t> shape(input.dim(), 1);
  shape[1] = values.numel();
  return values.reshape(shape);
}

std::tuple<Tensor, Tensor> stats(const Tensor& input, double epsilon) {
  auto wide = input.to(statistics_type(input));
  auto dimensions = all_but_channels(input);
  auto mean = wide.mean(dimensions);
  auto variance = (wide - per_channel(mean, input)).square().mean(dimensions);
  return {mean, (variance + epsilon).rsqrt()};
}

std::tuple<Tensor, Tensor> gather_stats_with_counts(
    const Tensor&, const Tensor& mean, const Tensor& invstd, const OptionalTensor& running_mean, const OptionalTensor& running_var,
    double momentum, double epsilon, const Tensor& counts) {
  auto weights = counts.reshape({-1, 1}).to(mean.scalar_type());
  auto total = weights.sum();
  auto joined_mean = (mean * weights).sum(0) / total;
  auto variances = invstd.square().reciprocal() - epsilon;
  auto squares = ((variances + (mean - joined_mean).square()) * weights).sum(0);
  if (running_mean && running_mean->defined()) {
    Tensor running = *running_mean;
    running.mul_(1 - momentum).add_(joined_mean.to(running.scalar_type()), momentum);
  }
  if (running_var && running_var->defined()) {
    Tensor running = *running_var;
    running.mul_(1 - momentum).add_((squares / (total - 1)).to(running.scalar_type()), momentum);
  }
  return {joined_mean, (squares / total + epsilon).rsqrt()};
}

std::tuple<Tensor, Tensor> gather_stats(
    const Tensor& input, const Tensor& mean, const Tensor& invstd, const OptionalTensor& running_mean, const OptionalTensor& running_var,
    double momentum, double epsilon, int64_t count) {
  auto counts = at::full({mean.size(0)}, count, mean.options());
  return gather_stats_with_counts(input, mean, invstd, running_mean, running_var, momentum, epsilon, counts);
}

Tensor elemt(
    const Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias, const Tensor& mean, const Tensor& invstd, double) {
  auto result = (input.to(mean.scalar_type()) - per_channel(mean, input)) * per_channel(invstd, input);
  if (weight && weight->defined()) result = result * per_channel(weight->to(mean.scalar_type()), input);
  if (bias && bias->defined()) result = result + per_channel(bias->to(mean.scalar_type()), input);
  return result.to(input.scalar_type());
}

std::tuple<Tensor, Tensor, Tensor, Tensor> backward_reduce(
    const Tensor& gradient, const Tensor& input, const Tensor& mean, const Tensor& invstd, const OptionalTensor& weight, bool input_wanted,
    bool weight_wanted, bool bias_wanted) {
  auto dimensions = all_but_channels(input);
  auto wide = gradient.to(mean.scalar_type());
  auto sum_dy = wide.sum(dimensions);
  auto sum_dy_xmu = (wide * (input.to(mean.scalar_type()) - per_channel(mean, input))).sum(dimensions);
  auto type = weight && weight->defined() ? weight->scalar_type() : mean.scalar_type();
  return {
      input_wanted ? sum_dy : Tensor(), input_wanted ? sum_dy_xmu : Tensor(), weight_wanted ? (sum_dy_xmu * invstd).to(type) : Tensor(),
      bias_wanted ? sum_dy.to(type) : Tensor()};
}

Tensor backward_elemt(
    const Tensor& gradient, const Tensor& input, const Tensor& mean, const Tensor& invstd, const OptionalTensor& weight, const Tensor& sum_dy,
    const Tensor& sum_dy_xmu, const Tensor& counts) {
  auto total = counts.sum().to(mean.scalar_type());
  auto centred = input.to(mean.scalar_type()) - per_channel(mean, input);
  auto along = per_channel(invstd.square() * sum_dy_xmu / total, input);
  auto result = gradient.to(mean.scalar_type()) - per_channel(sum_dy / total, input) - centred * along;
  auto scale = weight && weight->defined() ? invstd * weight->to(mean.scalar_type()) : invstd;
  return (result * per_channel(scale, input)).to(input.scalar_type());
}

std::unique_ptr<torch::Library> library;

}  // namespace

void register_batch_norm() {
  library = std::make_unique<torch::Library>(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  library->impl("batch_norm_stats", TORCH_FN(stats));
  library->impl("batch_norm_gather_stats", TORCH_FN(gather_stats));
  library->impl("batch_norm_gather_stats_with_counts", TORCH_FN(gather_stats_with_counts));
  library->impl("batch_norm_elemt", TORCH_FN(elemt));
  library->impl("batch_norm_backward_reduce", TORCH_FN(backward_reduce));
  library->impl("batch_norm_backward_elemt", TORCH_FN(backward_elemt));
}

}  // namespace simnpu
