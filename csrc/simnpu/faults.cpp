// A fault that Python has armed strikes once, at the next collective or allocation.
#include "simnpu.h"

#include <c10/util/Exception.h>
#include <unistd.h>

#include <cstdio>
#include <mutex>

namespace simnpu {

std::atomic<int> armed_point{0};

namespace {
std::mutex guard;
Blow armed_blow = Blow::kRaise;
std::string armed_text;
constexpr int kExitCode = 17;
}  // namespace

void arm_fault(Point point, Blow blow, std::string text) {
  std::lock_guard<std::mutex> lock(guard);
  armed_blow = blow;
  armed_text = std::move(text);
  armed_point.store(static_cast<int>(point));
}

void strike(int device) {
  std::string text;
  Blow blow{};
  {
    std::lock_guard<std::mutex> lock(guard);
    if (armed_point.exchange(0) == 0) return;  // another thread was first
    text = armed_text;
    blow = armed_blow;
  }
  switch (blow) {
    case Blow::kHang:
      fprintf(stderr, "%s\n", text.c_str());
      while (true) sleep(60);
    case Blow::kExit:
      fprintf(stderr, "%s\n", text.c_str());
      fflush(nullptr);
      _exit(kExitCode);
    case Blow::kOutOfMemory:
      memory_of(device).out_of_memory++;
      TORCH_CHECK_WITH(OutOfMemoryError, false, text);
    case Blow::kRaise:
      TORCH_CHECK(false, text);
  }
}

}  // namespace simnpu
