// Implements the exchange over a SharedRegion. Each rank counts the barriers it has come to; a rank
// has passed one when every count has reached it. Data goes through slots in rounds of one barrier
// each: two slots a rank, used in turn, are enough, because who writes a slot again has passed the
// barrier that everyone came to after reading it.
#include <poll.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "learners/collectives/shared_layout.hpp"
#include "learners/collectives/shared_memory.hpp"

namespace troupe::learners {
namespace {

using Clock = std::chrono::steady_clock;
using shared::Control;

constexpr std::chrono::milliseconds kLook(20);  // between looks whether a rank lives
constexpr int kSpins = 1000;

class SharedExchange final : public Exchange {
 public:
  SharedExchange(std::shared_ptr<SharedRegion> region, int rank, std::chrono::milliseconds timeout)
      : region_(std::move(region)),
        memory_(region_->memory()),
        rank_(rank),
        size_(region_->ranks()),
        slot_(region_->slot_bytes()),
        timeout_(timeout),
        spins_(static_cast<unsigned>(size_) <= std::thread::hardware_concurrency() ? kSpins : 0),
        watched_(static_cast<std::size_t>(size_), -1) {
    control(rank_).process.store(static_cast<std::uint32_t>(::getpid()));
  }
  ~SharedExchange() override {
    leave({});
    for (const int descriptor : watched_)
      if (descriptor >= 0) ::close(descriptor);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Result<void> gather(std::span<const std::uint8_t> mine, std::span<std::uint8_t> all) override {
    return in_rounds(mine.size(), slot_, [&](std::size_t at, std::size_t bytes) {
      std::memcpy(slot(rank_), mine.data() + at, bytes);
      return barrier().map([&] {
        for (int rank = 0; rank < size_; ++rank)
          std::memcpy(all.data() + static_cast<std::size_t>(rank) * mine.size() + at, slot(rank),
                      bytes);
      });
    });
  }

  Result<void> broadcast(std::span<std::uint8_t> data, int from) override {
    return in_rounds(data.size(), slot_, [&](std::size_t at, std::size_t bytes) {
      if (rank_ == from) std::memcpy(slot(rank_), data.data() + at, bytes);
      return barrier().map([&] {
        if (rank_ != from) std::memcpy(data.data() + at, slot(from), bytes);
      });
    });
  }

  Result<void> reduce(Elements values, ReduceOp op) override {
    const std::span<std::uint8_t> data = values.as_bytes();
    // Every rank reduces all of a round by itself, or its part of it: few ranks move fewer bytes
    // the first way.
    const bool in_parts = size_ > 3;
    return in_rounds(data.size(), slot_, [&](std::size_t at, std::size_t bytes) {
      const Elements round{data.data() + at,
                           static_cast<std::int64_t>(bytes / size_of(values.type)), values.type};
      std::memcpy(slot(rank_), round.data, bytes);
      Result<void> met = barrier();
      if (!met) return met;
      if (in_parts) return reduce_in_parts(round, op);
      reduce_slots(round.type, op, {0, round.count}, round.data);
      return met;
    });
  }

  void leave(std::string_view reason) override {
    fail_group("Rank " + std::to_string(rank_) + " left" +
               (reason.empty() ? "." : ": " + std::string(reason)));
  }

 private:
  Control& control(int rank) const { return shared::control_of(memory_, rank); }
  std::uint8_t* slot(int rank) const {
    return static_cast<std::uint8_t*>(memory_) +
           shared::data_offset(static_cast<std::size_t>(size_)) +
           (static_cast<std::size_t>(2 * rank) + round_ % 2) * slot_;
  }

  // work(offset, bytes) for pieces of at most `most` bytes; at least one, so that all ranks meet.
  template <class Work>
  Result<void> in_rounds(std::size_t bytes, std::size_t most, Work work) {
    if (Result<void> good = failure(); !good) return good;
    std::size_t at = 0;
    do {
      const std::size_t piece = std::min(most, bytes - at);
      if (Result<void> done = work(at, piece); !done) return done;
      ++round_;
      at += piece;
    } while (at < bytes);
    return {};
  }

  void reduce_slots(ElementType type, ReduceOp op, Part part, void* to) {
    const std::size_t skip = static_cast<std::size_t>(part.begin) * size_of(type);
    std::array<const void*, shared::kMaxRanks> sources;
    for (int rank = 0; rank < size_; ++rank)
      sources[static_cast<std::size_t>(rank)] = slot(rank) + skip;
    const std::array<void*, 1> destinations = {to};
    learners::reduce(type, op, part.size(),
                     std::span(sources).first(static_cast<std::size_t>(size_)), destinations);
  }

  // Part r of every slot is read by rank r alone, which may therefore write its sum there.
  Result<void> reduce_in_parts(Elements round, ReduceOp op) {
    const auto offset = [&](const Part& part) {
      return static_cast<std::size_t>(part.begin) * size_of(round.type);
    };
    const Part own = part_of(round.count, size_, rank_);
    reduce_slots(round.type, op, own, slot(rank_) + offset(own));
    return barrier().map([&] {
      for (int rank = 0; rank < size_; ++rank) {
        const Part part = part_of(round.count, size_, rank);
        std::memcpy(static_cast<std::uint8_t*>(round.data) + offset(part),
                    slot(rank) + offset(part),
                    static_cast<std::size_t>(part.size()) * size_of(round.type));
      }
    });
  }

  Result<void> barrier() {
    const std::uint32_t target = ++barriers_;
    Control& own = control(rank_);
    own.arrived.store(target);
    if (own.sleepers.load() > 0) shared::futex_wake(own.arrived);
    const Clock::time_point deadline = Clock::now() + timeout_;
    for (int rank = 0; rank < size_; ++rank)
      if (Result<void> there = await(rank, target, deadline); !there) return there;
    return {};
  }

  Result<void> await(int rank, std::uint32_t target, Clock::time_point deadline) {
    Control& other = control(rank);
    const auto reached = [&] {
      return static_cast<std::int32_t>(other.arrived.load() - target) >= 0;
    };
    for (int i = 0; i < spins_; ++i) {
      if (reached()) return {};
      __builtin_ia32_pause();
    }
    while (!reached()) {
      if (Result<void> good = failure(); !good) return reached() ? Result<void>{} : good;
      sleep(other, target);
      if (reached()) break;
      if (died(rank) && !reached())
        fail_group("The process of rank " + std::to_string(rank) + ", " +
                   std::to_string(other.process.load()) + ", died.");
      else if (Clock::now() > deadline)
        fail_group("Rank " + std::to_string(rank) + " did not come within " +
                   std::to_string(timeout_.count()) + " ms.");
    }
    return {};
  }

  void sleep(Control& other, std::uint32_t target) {
    ++other.sleepers;
    const std::uint32_t seen = other.arrived.load();
    if (static_cast<std::int32_t>(seen - target) < 0)
      shared::futex_wait(other.arrived, seen, kLook);
    --other.sleepers;
  }

  bool died(int rank) {
    int& descriptor = watched_[static_cast<std::size_t>(rank)];
    const auto process = static_cast<pid_t>(control(rank).process.load());
    if (process == 0) return false;
    if (descriptor < 0) descriptor = shared::open_process(process);
    if (descriptor < 0) return errno == ESRCH;
    pollfd poll{descriptor, POLLIN, 0};
    return ::poll(&poll, 1, 0) == 1;
  }

  void fail_group(const std::string& reason) {
    shared::Header& header = shared::header_of(memory_);
    std::uint32_t none = 0;
    if (!header.failure.compare_exchange_strong(none, 1)) return;
    const std::size_t size = std::min(reason.size(), sizeof(header.reason) - 1);
    std::memcpy(header.reason, reason.data(), size);
    header.reason[size] = '\0';
    header.failure.store(2);
    for (int rank = 0; rank < size_; ++rank) shared::futex_wake(control(rank).arrived);
  }

  Result<void> failure() const {
    const shared::Header& header = shared::header_of(memory_);
    const std::uint32_t state = header.failure.load();
    if (state == 0) return {};
    // Who is writing the reason may have died at it.
    const std::string reason =
        state == 2 ? std::string(header.reason, ::strnlen(header.reason, sizeof(header.reason)))
                   : "A rank failed.";
    return fail(ErrorCode::kUnavailable, reason);
  }

  std::shared_ptr<SharedRegion> region_;
  void* memory_;
  int rank_, size_;
  std::size_t slot_;
  std::chrono::milliseconds timeout_;
  int spins_;
  std::uint32_t barriers_ = 0;
  std::size_t round_ = 0;
  std::vector<int> watched_;  // pidfds, opened when first waited for
};

}  // namespace

Result<std::unique_ptr<Exchange>> make_shared_memory_exchange(std::shared_ptr<SharedRegion> region,
                                                              int rank,
                                                              std::chrono::milliseconds timeout) {
  if (rank < 0 || rank >= region->ranks())
    return fail(ErrorCode::kInvalidArgument, "A region for " + std::to_string(region->ranks()) +
                                                 " ranks has no rank " + std::to_string(rank) +
                                                 ".");
  return std::make_unique<SharedExchange>(std::move(region), rank, timeout);
}

}  // namespace troupe::learners
