// How many threads a process may keep busy, and what its threads are called. Safe from any thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::actors {

// Shown by ps -T, top and debuggers; Linux keeps the first 15 characters.
void name_thread(std::string_view name);

// Cores this process may use: its affinity mask, and the control group's CPU quota rounded up. At
// least 1. (std::thread::hardware_concurrency ignores the quota, so it counts a container's whole
// host.)
int available_cores();

// Environment of a child whose numeric libraries (OpenMP, MKL, OpenBLAS, Eigen) may use `threads`
// threads.
std::vector<std::pair<std::string, std::string>> math_thread_environment(int threads);

}  // namespace troupe::actors
