#include "hccl_work.h"

#include "simnpu.h"

#include <ATen/core/jit_type.h>

#include <algorithm>
#include <thread>

namespace simnpu {
namespace {

constexpr int kTaskTimeout = 507048;

bool contains(const std::string& text, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(), [&](const char* word) { return text.find(word) != std::string::npos; });
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

}  // namespace

std::exception_ptr told_by_hccl(const std::exception_ptr& failure, const std::string& collective) {
  if (!failure) return failure;
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    std::string text = error.what();
    if (text.find("raised by the simulated NPU") != std::string::npos) return failure;
    std::string detail;
    if (contains(text, {"imed out", "timeout"}))
      detail = "waiting for the notify of another rank took longer than the timeout: one rank stopped, is much slower, or issued another collective.";
    else if (contains(text, {"Connection closed", "onnection reset", "roken pipe", "onnection refused"}))
      detail = "no notify from another rank: its process has exited (ExceptionType: Heartbeat Lost).";
    else
      return failure;
    auto message = driver_error(
        "Hccl" + collective, kTaskTimeout, "The execution of the internal task times out.",
        "EI0002: " + detail + " Look for the rank that failed first. (" + first_line(text) + ")");
    return std::make_exception_ptr(c10::Error({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, message));
  } catch (...) {
    return failure;
  }
}

HcclWork::HcclWork(
    WorkPtr inner, c10d::OpType type, std::string name, c10::IValue value, Tensors tensors, std::vector<c10::Device> devices, bool with_future)
    : Work(-1, type),
      inner_(std::move(inner)),
      name_(std::move(name)),
      value_(std::move(value)),
      tensors_(std::move(tensors)),
      devices_(std::move(devices)) {
  if (with_future) getFuture();
}

bool HcclWork::isCompleted() {
  return inner_->isCompleted();
}

bool HcclWork::isSuccess() const {
  return inner_->isSuccess();
}

std::exception_ptr HcclWork::exception() const {
  return told_by_hccl(inner_->exception(), name_);
}

int HcclWork::sourceRank() const {
  return inner_->sourceRank();
}

Tensors HcclWork::result() {
  return tensors_;
}

void HcclWork::synchronize() {
  inner_->synchronize();
}

bool HcclWork::wait(std::chrono::milliseconds timeout) {
  try {
    bool done = inner_->wait(timeout);
    if (future_ && done) future_->wait();
    return done;
  } catch (...) {
    std::rethrow_exception(told_by_hccl(std::current_exception(), name_));
  }
}

void HcclWork::abort() {
  inner_->abort();
}

uint64_t HcclWork::getSequencenumber() const {
  return inner_->getSequencenumber();
}

c10::intrusive_ptr<c10::ivalue::Future> HcclWork::getFuture() {
  std::lock_guard<std::mutex> lock(guard_);
  if (future_) return future_;
  c10::intrusive_ptr<c10::ivalue::Future> inner;
  try {
    inner = inner_->getFuture();
  } catch (const c10::Error&) {
    inner = nullptr;  // this kind of work has none
  }
  auto type = value_.isNone() ? c10::TypePtr(c10::AnyType::get()) : value_.type();
  auto outer = c10::make_intrusive<c10::ivalue::Future>(type, devices_);
  if (inner) {
    inner->addCallback([outer, value = value_, name = name_](c10::ivalue::Future& done) {
      if (done.hasError())
        outer->setError(told_by_hccl(done.exception_ptr(), name));
      else
        outer->markCompleted(value);
    });
  } else {
    std::thread([outer, value = value_, name = name_, work = inner_] {
      try {
        work->wait();
        outer->markCompleted(value);
      } catch (...) {
        outer->setError(told_by_hccl(std::current_exception(), name));
      }
    }).detach();
  }
  future_ = outer;
  return future_;
}

bool CoalescedWork::isCompleted() {
  return std::all_of(works_.begin(), works_.end(), [](const WorkPtr& work) { return work->isCompleted(); });
}

bool CoalescedWork::isSuccess() const {
  return std::all_of(works_.begin(), works_.end(), [](const WorkPtr& work) { return work->isSuccess(); });
}

bool CoalescedWork::wait(std::chrono::milliseconds timeout) {
  bool done = true;
  for (auto& work : works_) done &= work->wait(timeout);
  return done;
}

void CoalescedWork::synchronize() {
  wait(kNoTimeout);
}

Tensors CoalescedWork::result() {
  Tensors all;
  for (auto& work : works_)
    for (auto& tensor : work->result()) all.push_back(tensor);
  return all;
}

}  // namespace simnpu
