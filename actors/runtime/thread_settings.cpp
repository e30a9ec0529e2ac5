#include "actors/runtime/thread_settings.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>

namespace troupe::actors {
namespace {

int cores_by_affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

// Control group v2: "max 100000" or "150000 100000" (microseconds of CPU in each period).
double cores_by_quota() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  double quota = 0, period = 0;
  if (!(file >> quota >> period) || quota <= 0 || period <= 0) return HUGE_VAL;
  return quota / period;
}

}  // namespace

void name_thread(std::string_view name) {
  ::pthread_setname_np(::pthread_self(), std::string(name.substr(0, 15)).c_str());
}

int available_cores() {
  const double quota = std::ceil(cores_by_quota());
  return static_cast<int>(std::max(1.0, std::min<double>(cores_by_affinity(), quota)));
}

std::vector<std::pair<std::string, std::string>> math_thread_environment(int threads) {
  const std::string count = std::to_string(threads);
  return {{"OMP_NUM_THREADS", count}, {"MKL_NUM_THREADS", count}, {"OPENBLAS_NUM_THREADS", count}};
}

}  // namespace troupe::actors
