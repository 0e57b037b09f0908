#include "hccl.h"

#include "simnpu.h"

#include <ATen/core/jit_type.h>
#include <torch/csrc/distributed/c10d/reducer_timer.hpp>

namespace simnpu {

using c10d::OpType;

namespace {

constexpr int kAllToAllTag = 77001;  // gloo has no list form of all-to-all; its sends and receives are told apart by this
constexpr int kCardsOfARing = 4;

Tensors flat(const Hccl::TensorLists& lists) {
  Tensors all;
  for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

// HCCL looks at bytes; gloo would split the first dimension.
at::Tensor one_dimension(const at::Tensor& alias) {
  return alias.as_strided({alias.numel()}, {1});
}

Tensors one_dimension(Tensors aliases) {
  for (auto& alias : aliases) alias = one_dimension(alias);
  return aliases;
}

}  // namespace

Hccl::Hccl(c10::intrusive_ptr<c10d::Backend> gloo, c10::intrusive_ptr<c10d::Store> store, std::string server)
    : Backend(gloo->getRank(), gloo->getSize()), gloo_(std::move(gloo)), store_(std::move(store)), server_(std::move(server)) {}

at::Tensor Hccl::alias(const at::Tensor& tensor) {
  TORCH_CHECK(is_npu(tensor), "hccl moves tensors of NPUs only, and this one is on ", tensor.device());
  TORCH_CHECK(
      tensor.is_contiguous() || tensor.is_non_overlapping_and_dense(), "Tensors must be contiguous\nERR02002 DIST invalid type\n",
      "(raised by the simulated NPU)");
  enter(tensor.get_device());
  return to_alias(tensor);
}

Tensors Hccl::alias(const Tensors& tensors) {
  Tensors aliases;
  for (const auto& tensor : tensors) aliases.push_back(alias(tensor));
  return aliases;
}

Hccl::TensorLists Hccl::alias(const TensorLists& lists) {
  TensorLists aliases;
  for (const auto& list : lists) aliases.push_back(alias(list));
  return aliases;
}

void Hccl::enter(int device) {
  if (!devices_checked_) check_devices(device);
  fault_point(Point::kCollective, device);
}

// Once per group: an NPU for every rank of a server, and on a 910A no job of 2 or 4 cards over both rings.
void Hccl::check_devices(int device) {
  devices_checked_ = true;
  if (getSize() == 1) return;
  auto key = [](int rank) { return "unisono_sim_device/" + std::to_string(rank); };
  int card = rules.cards.at(device);
  store_->set(key(getRank()), server_ + "|" + std::to_string(card));
  std::vector<int> first_ring, second_ring;
  std::string mine = server_ + "|";
  for (int rank = 0; rank < getSize(); rank++) {
    auto bytes = store_->get(key(rank));
    std::string told(bytes.begin(), bytes.end());
    if (told.rfind(mine, 0) != 0) continue;
    int other = std::stoi(told.substr(mine.size()));
    TORCH_CHECK(
        rank == getRank() || other != card,
        hccl_error(
            "HcclCommInitRootInfo", 4, "EI0014",
            "ranks " + std::to_string(std::min(rank, getRank())) + " and " + std::to_string(std::max(rank, getRank())) + " both use NPU " +
                std::to_string(card) + ". Call torch.npu.set_device(local_rank) before the first collective"));
    (other < kCardsOfARing ? first_ring : second_ring).push_back(other);
  }
  size_t cards = first_ring.size() + second_ring.size();
  TORCH_CHECK(
      !rules.two_rings || (cards != 2 && cards != 4) || first_ring.empty() || second_ring.empty(),
      hccl_error(
          "HcclCommInitRootInfo", 4, "EI0004",
          "on this chip cards 0-3 and 4-7 are two rings, and a job of " + std::to_string(cards) + " cards must stay on one of them"));
  TORCH_CHECK(
      !rules.two_rings || cards == 1 || cards == 2 || cards == 4 || cards == 8,
      hccl_error(
          "HcclCommInitRootInfo", 4, "EI0004",
          "on this chip a server takes part with 1, 2, 4 or 8 cards, and this job has " + std::to_string(cards)));
}

template <typename Call>
WorkPtr Hccl::run(OpType type, const char* name, const c10::IValue& value, const Tensors& tensors, bool with_future, Call call) {
  std::vector<c10::Device> devices{tensors.empty() ? c10::Device(kNpu, static_cast<c10::DeviceIndex>(current_device)) : tensors[0].device()};
  WorkPtr inner;
  try {
    inner = call();
  } catch (...) {
    std::rethrow_exception(told_by_hccl(std::current_exception(), name));
  }
  auto work = c10::make_intrusive<HcclWork>(std::move(inner), type, name, value, tensors, std::move(devices), with_future);
  if (coalescing_) coalesced_.push_back(work);
  return work;
}

const std::string Hccl::getBackendName() const {
  return "hccl";
}

c10::intrusive_ptr<c10d::Backend::Options> Hccl::getBackendOptions() {
  return gloo_->getBackendOptions();
}

bool Hccl::supportsCoalescing() const {
  return true;
}

void Hccl::startCoalescing() {
  coalescing_ = true;
  coalesced_.clear();
}

WorkPtr Hccl::endCoalescing() {
  coalescing_ = false;
  auto work = c10::make_intrusive<CoalescedWork>(std::move(coalesced_));
  coalesced_.clear();
  return work;
}

WorkPtr Hccl::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  auto aliases = alias(tensors);
  return run(OpType::BROADCAST, "Broadcast", tensors, tensors, true, [&] { return gloo_->broadcast(aliases, options); });
}

WorkPtr Hccl::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
  auto aliases = alias(tensors);
  return run(OpType::ALLREDUCE, "AllReduce", tensors, tensors, true, [&] { return gloo_->allreduce(aliases, options); });
}

WorkPtr Hccl::allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) {
  auto aliases = alias(tensors);
  return run(OpType::ALLREDUCE_COALESCED, "AllReduce", tensors, tensors, true, [&] { return gloo_->allreduce_coalesced(aliases, options); });
}

WorkPtr Hccl::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  auto aliases = alias(tensors);
  return run(OpType::REDUCE, "Reduce", tensors, tensors, true, [&] { return gloo_->reduce(aliases, options); });
}

WorkPtr Hccl::allgather(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  auto to = alias(outputs);
  auto from = alias(inputs);
  auto all = flat(outputs);
  return run(OpType::ALLGATHER, "AllGather", all, all, true, [&] { return gloo_->allgather(to, from, options); });
}

WorkPtr Hccl::_allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) {
  auto to = one_dimension(alias(output)), from = one_dimension(alias(input));
  Tensors all{output};
  return run(OpType::_ALLGATHER_BASE, "AllGather", all, all, true, [&] { return gloo_->_allgather_base(to, from, options); });
}

WorkPtr Hccl::allgather_coalesced(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  auto to = alias(outputs);
  auto from = alias(inputs);
  auto all = flat(outputs);
  return run(OpType::ALLGATHER_COALESCED, "AllGather", all, all, true, [&] { return gloo_->allgather_coalesced(to, from, options); });
}

WorkPtr Hccl::allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  auto to = one_dimension(alias(outputs)), from = one_dimension(alias(inputs));
  return run(OpType::COALESCED, "AllGather", outputs, outputs, false, [&] { return gloo_->allgather_into_tensor_coalesced(to, from, options); });
}

WorkPtr Hccl::gather(TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions& options) {
  auto to = alias(outputs);
  auto from = alias(inputs);
  auto all = flat(outputs);
  return run(OpType::GATHER, "Gather", all, all, true, [&] { return gloo_->gather(to, from, options); });
}

WorkPtr Hccl::scatter(Tensors& outputs, TensorLists& inputs, const c10d::ScatterOptions& options) {
  auto to = alias(outputs);
  auto from = alias(inputs);
  return run(OpType::SCATTER, "Scatter", outputs, outputs, true, [&] { return gloo_->scatter(to, from, options); });
}

WorkPtr Hccl::reduce_scatter(Tensors& outputs, TensorLists& inputs, const c10d::ReduceScatterOptions& options) {
  auto to = alias(outputs);
  auto from = alias(inputs);
  return run(OpType::REDUCE_SCATTER, "ReduceScatter", outputs, outputs, false, [&] { return gloo_->reduce_scatter(to, from, options); });
}

WorkPtr Hccl::_reduce_scatter_base(at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& options) {
  auto to = one_dimension(alias(output)), from = one_dimension(alias(input));
  Tensors all{output};
  return run(OpType::_REDUCE_SCATTER_BASE, "ReduceScatter", all, all, false, [&] { return gloo_->_reduce_scatter_base(to, from, options); });
}

WorkPtr Hccl::reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options) {
  auto to = one_dimension(alias(outputs)), from = one_dimension(alias(inputs));
  return run(OpType::COALESCED, "ReduceScatter", outputs, outputs, false, [&] {
    return gloo_->reduce_scatter_tensor_coalesced(to, from, options);
  });
}

WorkPtr Hccl::alltoall_base(
    at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_splits, std::vector<int64_t>& input_splits,
    const c10d::AllToAllOptions& options) {
  auto to = alias(output), from = alias(input);
  Tensors all{output};
  return run(OpType::ALLTOALL_BASE, "AllToAll", all, all, true, [&] {
    return gloo_->alltoall_base(to, from, output_splits, input_splits, options);
  });
}

WorkPtr Hccl::alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions&) {
  auto to = alias(outputs), from = alias(inputs);
  std::vector<WorkPtr> works;
  int rank = getRank();
  for (int peer = 0; peer < getSize(); peer++) {
    if (peer == rank) continue;
    Tensors received{to[peer]};
    works.push_back(gloo_->recv(received, peer, kAllToAllTag));
  }
  for (int peer = 0; peer < getSize(); peer++) {
    if (peer == rank) continue;
    Tensors sent{from[peer]};
    works.push_back(gloo_->send(sent, peer, kAllToAllTag));
  }
  to[rank].copy_(from[rank]);
  auto all = c10::make_intrusive<CoalescedWork>(std::move(works));
  return run(OpType::ALLTOALL, "AllToAll", outputs, outputs, false, [&] { return all; });
}

WorkPtr Hccl::send(Tensors& tensors, int destination, int tag) {
  auto aliases = alias(tensors);
  return run(OpType::SEND, "Send", tensors, tensors, false, [&] { return gloo_->send(aliases, destination, tag); });
}

WorkPtr Hccl::recv(Tensors& tensors, int source, int tag) {
  auto aliases = alias(tensors);
  return run(OpType::RECV, "Recv", tensors, tensors, false, [&] { return gloo_->recv(aliases, source, tag); });
}

WorkPtr Hccl::recvAnysource(Tensors& tensors, int tag) {
  auto aliases = alias(tensors);
  return run(OpType::RECVANYSOURCE, "Recv", tensors, tensors, false, [&] { return gloo_->recvAnysource(aliases, tag); });
}

WorkPtr Hccl::barrier(const c10d::BarrierOptions& options) {
  fault_point(Point::kCollective, current_device);
  return run(OpType::BARRIER, "Barrier", c10::IValue(), {}, false, [&] { return gloo_->barrier(options); });
}

void Hccl::monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) {
  gloo_->monitoredBarrier(options, wait_all_ranks);
}

void Hccl::setSequenceNumberForGroup() {
  gloo_->setSequenceNumberForGroup();
}

uint64_t Hccl::getSequenceNumberForGroup() {
  return gloo_->getSequenceNumberForGroup();
}

void Hccl::setTimeout(std::chrono::milliseconds timeout) {
  gloo_->setTimeout(timeout);
}

void Hccl::setGroupUid(const std::string& uid) {
  pg_uid_ = uid;
  gloo_->setGroupUid(uid);
}

}  // namespace simnpu

namespace c10d {
namespace {

// Without a timer for the device, DDP's logger warns on every rank.
struct NpuTimer : Timer {
  explicit NpuTimer(c10::Device) {}
  std::optional<int64_t> measureDifference(Event start, Event end) override {
    auto from = getTimeRef(start), to = getTimeRef(end);
    if (from < 0 || to <= from) return std::nullopt;
    return to - from;
  }
};
C10_REGISTER_TYPED_CLASS(TimerRegistry, c10::kPrivateUse1, NpuTimer);

}  // namespace
}  // namespace c10d
