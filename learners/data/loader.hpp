// Reads, decodes and cuts pictures ahead of need, on threads of its own. What comes out depends on
// the seed, the epoch and the position alone, not on the threads. Used by one thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "learners/data/augment.hpp"
#include "learners/data/data_set.hpp"
#include "learners/data/epoch_order.hpp"

namespace troupe::learners::data {

struct LoaderOptions {
  AugmentOptions augment;
  std::int64_t threads = 1;
  bool training = true;       // random cuts in a shuffled order; else centre cuts in the set's own
  bool skip_corrupt = false;  // leave out pictures that cannot be decoded; else they are an error
  std::uint64_t seed = 0;
  std::int64_t window = 0;  // OrderOptions::window
};

// Rows [0, size()) of one request; fewer than were asked for where corrupt ones were left out.
struct Pictures {
  std::uint64_t epoch = 0;
  int side = 0, channels = 0;
  std::vector<std::uint8_t> pixels;     // [rows][side][side][channels]
  std::vector<std::int64_t> labels;     // [rows]
  std::vector<std::int64_t> positions;  // [rows] in the epoch
  std::vector<std::string> corrupt;     // what was left out, named with the reason

  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
};

class Loader {
 public:
  // `options.augment` has passed check().
  Loader(std::shared_ptr<const DataSet> set, const LoaderOptions& options);
  ~Loader();  // gives up what is pending
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // Asks for the positions begin <= p < end of an epoch. Never waits; memory is what is pending.
  void request(std::uint64_t epoch, std::int64_t begin, std::int64_t end);
  // What was asked for first and not given yet; waits for it. kUnavailable when nothing is pending;
  // otherwise what went wrong with the first picture of it that did: kIo, or kCorrupt.
  Result<Pictures> next();
  std::size_t pending() const { return jobs_.size(); }
  // Time that next() has waited so far: what a faster disk or more threads would save.
  std::chrono::nanoseconds waited() const { return waited_; }

 private:
  struct Job {
    std::shared_ptr<const EpochOrder> order;
    Pictures out;                       // rows in place, also of failed ones
    std::vector<std::string> failures;  // [row], empty: fine
    std::vector<ErrorCode> codes;       // [row]
    std::int64_t begin = 0, rows = 0;
    std::int64_t claimed = 0, done = 0;  // under the mutex
  };

  void work(const std::stop_token& stop);
  void fill(Job& job, std::int64_t row) const;
  std::shared_ptr<const EpochOrder> order_of(std::uint64_t epoch);
  Result<Pictures> finish(Job& job) const;

  const std::shared_ptr<const DataSet> set_;
  const LoaderOptions options_;
  std::vector<std::pair<std::uint64_t, std::shared_ptr<const EpochOrder>>> orders_;  // the last two
  std::chrono::nanoseconds waited_{0};
  std::mutex mutex_;
  std::condition_variable_any wanted_, finished_;
  std::deque<std::shared_ptr<Job>> jobs_;  // in the order of the requests
  std::vector<std::jthread> threads_;      // last: joined before the rest goes
};

}  // namespace troupe::learners::data
