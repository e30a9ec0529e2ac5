// A few threads that work through the phases of one computation together: the caller and `size` - 1
// helpers. Cheaper than a general pool because everybody takes part in every phase. A Team belongs
// to the thread that made it; run() is called by that thread alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace troupe::learners::kernels {

class Team {
 public:
  // size >= 1; size 1 starts no thread.
  explicit Team(int size);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int size() const { return size_; }

  // Calls work(index) once for each index in [0, size), 0 on the calling thread, and returns when
  // all have returned. `work` throws nothing. Allocates nothing.
  void run(const std::function<void(int)>& work);

  // Inside work: returns when every member has called it as often as this one.
  void meet();

 private:
  void help(int index);

  int size_;
  const std::function<void(int)>* work_ = nullptr;
  std::atomic<std::uint32_t> started_{0};   // runs begun
  std::atomic<std::uint32_t> arrived_{0};   // members waiting in meet
  std::atomic<std::uint32_t> meetings_{0};  // completed meets
  std::atomic<bool> stop_{false};
  std::vector<std::thread> helpers_;
};

}  // namespace troupe::learners::kernels
