// Error texts with the fields and codes of the real driver and of HCCL, so that tools and scripts can be tried on them.
#include "simnpu.h"

#include <sys/time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace simnpu {
namespace {

std::string timestamp(bool fine) {
  timeval now{};
  gettimeofday(&now, nullptr);
  tm parts{};
  localtime_r(&now.tv_sec, &parts);
  char text[64];
  size_t length = strftime(text, sizeof text, "%Y-%m-%d-%H:%M:%S", &parts);
  if (fine)
    snprintf(text + length, sizeof text - length, ".%03d.%03d", static_cast<int>(now.tv_usec / 1000), static_cast<int>(now.tv_usec % 1000));
  return text;
}

std::string rank_of_process() {
  const char* rank = getenv("RANK");
  return rank ? rank : "-1";
}

std::string stamp(const std::string& kind) {
  return "[ERROR] " + timestamp(false) + " (PID:" + std::to_string(getpid()) + ", Device:" + std::to_string(current_device) +
      ", RankID:" + rank_of_process() + ") " + kind;
}

}  // namespace

std::string driver_error(const std::string& call, int code, const std::string& meaning, const std::string& detail) {
  return "NPU function error: " + call + ", error code is " + std::to_string(code) + "\n" + stamp("ERR00100 PTA call acl api failed") +
      "\n[Error]: " + meaning + "\n" + (detail.empty() ? "" : detail + "\n") + "(raised by the simulated NPU)";
}

std::string hccl_error(const std::string& call, int code, const std::string& cann_code, const std::string& detail) {
  return "HCCL function error: " + call + ", error code is " + std::to_string(code) + "\n" + stamp("ERR02200 DIST call hccl api failed") + "\n" +
      cann_code + ": [PID: " + std::to_string(getpid()) + "] " + timestamp(true) + " " + detail + "\n(raised by the simulated NPU)";
}

std::string megabytes(int64_t bytes) {
  char text[48];
  if (bytes >= (1LL << 30))
    snprintf(text, sizeof text, "%.2f GiB", static_cast<double>(bytes) / (1LL << 30));
  else
    snprintf(text, sizeof text, "%.2f MiB", static_cast<double>(bytes) / (1LL << 20));
  return text;
}

}  // namespace simnpu
