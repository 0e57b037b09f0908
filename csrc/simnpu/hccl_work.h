// The handle of a collective: gloo's own, seen from the NPU side.
#pragma once

#include <ATen/core/ivalue.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <mutex>
#include <string>
#include <vector>

namespace simnpu {

using WorkPtr = c10::intrusive_ptr<c10d::Work>;
using Tensors = std::vector<at::Tensor>;

// gloo's failure told as HCCL tells it; other exceptions as they are.
std::exception_ptr told_by_hccl(const std::exception_ptr& failure, const std::string& collective);

// Hands out a Future for npu devices, which DDP and Python hooks need.
class HcclWork : public c10d::Work {
 public:
  // `with_future`: gloo's work has a future of its own. Its send, recv, reduce_scatter and barrier have none.
  HcclWork(WorkPtr inner, c10d::OpType type, std::string name, c10::IValue value, Tensors tensors, std::vector<c10::Device> devices, bool with_future);

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  int sourceRank() const override;
  Tensors result() override;
  void synchronize() override;
  bool wait(std::chrono::milliseconds timeout) override;
  void abort() override;
  uint64_t getSequencenumber() const override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

 private:
  WorkPtr inner_;
  std::string name_;
  c10::IValue value_;
  Tensors tensors_;
  std::vector<c10::Device> devices_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
  std::mutex guard_;
};

// Several works that end together.
class CoalescedWork : public c10d::Work {
 public:
  explicit CoalescedWork(std::vector<WorkPtr> works) : Work(-1, c10d::OpType::COALESCED), works_(std::move(works)) {}

  bool isCompleted() override;
  bool isSuccess() const override;
  bool wait(std::chrono::milliseconds timeout) override;
  void synchronize() override;
  Tensors result() override;

 private:
  std::vector<WorkPtr> works_;
};

}  // namespace simnpu
