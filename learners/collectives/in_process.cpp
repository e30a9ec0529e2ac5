// The in-process collective: ranks meet under one lock, the last one compares what all brought,
// then every rank works on its own part of the elements.
#include "learners/collectives/in_process.hpp"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <string>
#include <thread>

#include "learners/collectives/call.hpp"
#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

class Meeting {
 public:
  Meeting(int size, std::chrono::milliseconds timeout, int first)
      : calls_(static_cast<std::size_t>(size)),
        active_(calls_.size(), true),
        timeout_(timeout),
        first_(first),
        // More threads than cores only take each other's time by spinning.
        spins_(static_cast<unsigned>(size) <= std::thread::hardware_concurrency() ? 1000 : 0) {}

  int size() const { return static_cast<int>(calls_.size()); }
  const Call& call(int rank) const { return *calls_[static_cast<std::size_t>(rank)]; }

  // Returns when all ranks have brought a call that fits.
  Result<void> enter(int rank, const Call& call) {
    std::unique_lock lock(mutex_);
    for (int other = 0; other < size(); ++other)
      if (!active_[static_cast<std::size_t>(other)] && other != rank) early_error(other, call);
    if (!left_.empty()) fail_with(left_ + " before " + call.text() + reason_);
    if (!error_.empty()) return fail(ErrorCode::kUnavailable, error_);
    calls_[static_cast<std::size_t>(rank)] = &call;
    const std::uint64_t phase = phase_;
    if (arrive()) {
      compare();
      if (error_.empty()) next_phase();
    } else if (!await(lock, phase, true)) {
      fail_with("Not every replica came to " + call.text() + " within " +
                std::to_string(timeout_.count()) + " ms.");
    }
    if (phase_ == phase) return fail(ErrorCode::kUnavailable, error_);
    return {};
  }

  // Returns when all ranks are done with each other's tensors; `fault` is what went wrong with this
  // one's work. No timeout: whoever entered comes here, and until then reads what others own.
  Result<void> finish(const std::string& fault) {
    std::unique_lock lock(mutex_);
    if (fault_.empty()) fault_ = fault;
    const std::uint64_t phase = phase_;
    if (arrive()) {
      std::fill(calls_.begin(), calls_.end(), nullptr);
      if (!fault_.empty()) {
        fail_with(fault_);
        failed_phase_ = phase;
      }
      next_phase();
    } else {
      await(lock, phase, false);
    }
    // Not error_: others may have failed at the next call already.
    if (phase == failed_phase_) return fail(ErrorCode::kUnavailable, fault_);
    return {};
  }

  void leave(int rank, std::string_view reason) {
    const std::lock_guard lock(mutex_);
    if (left_.empty()) {
      left_ = name_of_rank(rank) + " left";
      reason_ = reason.empty() ? "." : ": " + std::string(reason);
    }
    if (const Call* waiting = any_waiting())
      fail_with(left_ + " before " + waiting->text() + reason_);
  }

  void set_active(int rank, bool active) {
    const std::lock_guard lock(mutex_);
    active_[static_cast<std::size_t>(rank)] = active;
    const Call* waiting = active ? nullptr : any_waiting();
    if (waiting) early_error(rank, *waiting);
  }

 private:
  std::string name_of_rank(int rank) const { return "Replica " + std::to_string(first_ + rank); }
  bool arrive() { return ++arrived_ == size(); }
  void next_phase() {
    arrived_ = 0;
    ++phase_;
    changed_.notify_all();
  }
  // False: the timeout passed. `entering`: an error ends the wait too, and the timeout counts.
  bool await(std::unique_lock<std::mutex>& lock, std::uint64_t phase, bool entering) {
    const auto over = [&] { return phase_ != phase || (entering && failed_); };
    lock.unlock();
    for (int i = 0; i < spins_ && !over(); ++i) __builtin_ia32_pause();
    lock.lock();
    if (entering) return changed_.wait_for(lock, timeout_, over);
    changed_.wait(lock, over);
    return true;
  }
  // A call of a rank that waits for others to come; none while all are at work.
  const Call* any_waiting() const {
    if (phase_ % 2 == 1 || !error_.empty()) return nullptr;
    const auto found = std::find_if(calls_.begin(), calls_.end(),
                                    [](const Call* call) { return call != nullptr; });
    return found == calls_.end() ? nullptr : *found;
  }
  void compare() {
    for (int rank = 0; rank < size() && error_.empty(); ++rank) {
      const std::string fault = fault_of(call(rank), size());
      if (!fault.empty())
        fail_with(call(rank).text() + " of replica " + std::to_string(first_ + rank) +
                  " cannot be made: " + fault + ".");
      else if (!agree(call(0), call(rank)))
        fail_with(difference_of(signature_of(call(0)), signature_of(call(rank)),
                                "replica " + std::to_string(first_),
                                "replica " + std::to_string(first_ + rank)));
    }
  }
  void early_error(int rank, const Call& call) {
    fail_with(name_of_rank(rank) + " ended its step before " + call.text() + ".");
  }
  void fail_with(const std::string& error) {
    if (error_.empty()) error_ = error;
    failed_ = true;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<const Call*> calls_;
  std::vector<bool> active_;
  std::chrono::milliseconds timeout_;
  int first_, spins_;
  std::atomic<std::uint64_t> phase_{0};  // even: ranks come; odd: they work
  std::atomic<bool> failed_{false};
  int arrived_ = 0;
  std::string left_, reason_;  // the first rank that left, and why
  std::string error_;
  std::string fault_;  // of someone's work, and when that was
  std::uint64_t failed_phase_ = ~std::uint64_t{0};
};

class InProcess final : public Collective {
 public:
  InProcess(std::shared_ptr<Meeting> meeting, int rank)
      : meeting_(std::move(meeting)), rank_(rank) {}
  ~InProcess() override { meeting_->leave(rank_, {}); }

  int rank() const override { return rank_; }
  int size() const override { return meeting_->size(); }
  void leave(std::string_view reason) override { meeting_->leave(rank_, reason); }
  void set_active(bool active) override { meeting_->set_active(rank_, active); }

  Result<void> all_reduce(std::span<const at::Tensor> tensors, ReduceOp op,
                          std::string_view name) override {
    return together({CallKind::kAllReduce, static_cast<int>(op), tensors, name}, [&] {
      for (std::size_t i = 0; i < tensors.size(); ++i) reduce_part(i, op);
    });
  }

  Result<std::vector<at::Tensor>> all_gather(std::span<const at::Tensor> tensors,
                                             std::string_view name) override {
    std::vector<at::Tensor> gathered;
    const Result<void> done = together({CallKind::kAllGather, 0, tensors, name}, [&] {
      for (std::size_t i = 0; i < tensors.size(); ++i) {
        std::vector<at::Tensor> parts;
        for (int rank = 0; rank < size(); ++rank) parts.push_back(meeting_->call(rank).tensors[i]);
        gathered.push_back(at::stack(parts));
      }
    });
    if (!done) return tl::unexpected(done.error());
    return gathered;
  }

  Result<void> broadcast(std::span<const at::Tensor> tensors, int from,
                         std::string_view name) override {
    return together({CallKind::kBroadcast, from, tensors, name}, [&] {
      if (rank_ == from) return;
      for (std::size_t i = 0; i < tensors.size(); ++i)
        std::memcpy(tensors[i].mutable_data_ptr(), meeting_->call(from).tensors[i].const_data_ptr(),
                    tensors[i].nbytes());
    });
  }

 private:
  // Reduces this rank's part of tensor `index` of all ranks and writes it into all of them.
  void reduce_part(std::size_t index, ReduceOp op) {
    const Elements own = elements_of(meeting_->call(rank_).tensors[index]);
    const Part part = part_of(own.count, size(), rank_);
    std::vector<void*> data;
    for (int rank = 0; rank < size(); ++rank)
      data.push_back(bytes_of(meeting_->call(rank).tensors[index]).data() +
                     static_cast<std::size_t>(part.begin) * size_of(own.type));
    reduce(own.type, op, part.size(), std::vector<const void*>(data.begin(), data.end()), data);
  }

  template <class Work>
  Result<void> together(const Call& call, Work work) {
    if (Result<void> entered = meeting_->enter(rank_, call); !entered) return entered;
    const c10::NoGradGuard no_grad;
    std::string fault;
    try {
      work();
    } catch (const std::exception& error) {
      fault = call.text() + " failed: " + error.what();
    }
    return meeting_->finish(fault);
  }

  std::shared_ptr<Meeting> meeting_;
  int rank_;
};

}  // namespace

std::vector<std::unique_ptr<Collective>> make_in_process_group(int size,
                                                               std::chrono::milliseconds timeout,
                                                               int first) {
  const auto meeting = std::make_shared<Meeting>(size, timeout, first);
  std::vector<std::unique_ptr<Collective>> ranks;
  for (int rank = 0; rank < size; ++rank)
    ranks.push_back(std::make_unique<InProcess>(meeting, rank));
  return ranks;
}

}  // namespace troupe::learners
