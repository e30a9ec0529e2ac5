// The in-process collective: ranks meet under one lock, the last one compares what all brought,
// then every rank works on its own slice of the elements.
#include "learners/collective.hpp"

#include <c10/core/GradMode.h>
#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <string>

#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

enum class Kind { kAllReduce, kAllGather, kBroadcast };
constexpr const char* kKindNames[] = {"all_reduce", "all_gather", "broadcast"};

struct Call {
  Kind kind;
  int parameter;  // operation or source rank
  std::span<const at::Tensor> tensors;
  std::string_view name;

  std::string text() const {
    return std::string(kKindNames[static_cast<int>(kind)]) + " '" + std::string(name) + "'";
  }
};

std::string describe(const at::Tensor& tensor) {
  std::string text = at::toString(tensor.scalar_type());
  text += " [";
  for (const std::int64_t extent : tensor.sizes())
    text += (text.back() == '[' ? "" : ", ") + std::to_string(extent);
  return text + "]";
}

// Why `call` cannot be made by this rank at all; empty if it can.
std::string fault_of(const Call& call, int size) {
  for (const at::Tensor& tensor : call.tensors) {
    const at::ScalarType type = tensor.scalar_type();
    if (!tensor.device().is_cpu() || !tensor.is_contiguous() ||
        (type != at::kFloat && type != at::kDouble && type != at::kLong))
      return "a tensor is not a contiguous f32, f64 or i64 one on the CPU";
  }
  if (call.kind == Kind::kBroadcast && (call.parameter < 0 || call.parameter >= size))
    return "there is no rank " + std::to_string(call.parameter);
  return {};
}

// Why two ranks' calls do not belong together; empty if they do.
std::string difference(const Call& a, const Call& b) {
  if (a.kind != b.kind || a.name != b.name) return "the other called " + b.text();
  if (a.parameter != b.parameter) return "the operations differ";
  if (a.tensors.size() != b.tensors.size()) return "the numbers of tensors differ";
  for (std::size_t i = 0; i < a.tensors.size(); ++i)
    if (a.tensors[i].scalar_type() != b.tensors[i].scalar_type() ||
        a.tensors[i].sizes() != b.tensors[i].sizes())
      return "tensor " + std::to_string(i) + " is " + describe(a.tensors[i]) + " here and " +
             describe(b.tensors[i]) + " there";
  return {};
}

class Meeting {
 public:
  Meeting(int size, std::chrono::milliseconds timeout)
      : calls_(static_cast<std::size_t>(size)), timeout_(timeout) {}

  int size() const { return static_cast<int>(calls_.size()); }
  const Call& call(int rank) const { return *calls_[static_cast<std::size_t>(rank)]; }

  // Returns when all ranks have brought a call that fits.
  Result<void> enter(int rank, const Call& call) {
    std::unique_lock lock(mutex_);
    if (error_.empty() && left_ >= 0) leave_error(left_, call);
    if (!error_.empty()) return fail(ErrorCode::kUnavailable, error_);
    calls_[static_cast<std::size_t>(rank)] = &call;
    return wait(lock, call, true);
  }
  // Returns when all ranks are done with each other's tensors.
  Result<void> finish(const Call& call) {
    std::unique_lock lock(mutex_);
    return wait(lock, call, false);
  }
  void leave(int rank) {
    const std::lock_guard lock(mutex_);
    if (left_ < 0) left_ = rank;
    if (arrived_ > 0 && error_.empty()) {
      for (const Call* waiting : calls_)
        if (waiting) leave_error(rank, *waiting);
    }
    changed_.notify_all();
  }

 private:
  // A phase ends when all ranks have arrived; it never ends once there is an error.
  Result<void> wait(std::unique_lock<std::mutex>& lock, const Call& call, bool entering) {
    const std::uint64_t phase = phase_;
    if (++arrived_ == size()) {
      if (entering) compare();
      if (!entering) std::fill(calls_.begin(), calls_.end(), nullptr);
      if (error_.empty()) {
        arrived_ = 0;
        ++phase_;
      }
      changed_.notify_all();
    } else if (!changed_.wait_for(lock, timeout_,
                                  [&] { return phase_ != phase || !error_.empty(); })) {
      error_ = "Not every replica came to " + call.text() + " within " +
               std::to_string(timeout_.count()) + " ms.";
      changed_.notify_all();
    }
    if (phase_ == phase) return fail(ErrorCode::kUnavailable, error_);
    return {};
  }
  void compare() {
    for (int rank = 0; rank < size() && error_.empty(); ++rank) {
      const std::string fault = fault_of(call(rank), size());
      const std::string other = difference(call(0), call(rank));
      if (!fault.empty())
        error_ = call(rank).text() + " of replica " + std::to_string(rank) +
                 " cannot be made: " + fault + ".";
      else if (!other.empty())
        error_ = call(0).text() + " of replica 0 does not match replica " + std::to_string(rank) +
                 ": " + other + ".";
    }
  }
  void leave_error(int rank, const Call& call) {
    error_ = "Replica " + std::to_string(rank) + " left before " + call.text() + ".";
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<const Call*> calls_;
  std::chrono::milliseconds timeout_;
  std::uint64_t phase_ = 0;
  int arrived_ = 0;
  int left_ = -1;  // first rank that left
  std::string error_;
};

template <class T>
void combine(T* sum, const T* more, std::int64_t count, ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kMean:
      for (std::int64_t i = 0; i < count; ++i) sum[i] += more[i];
      break;
    case ReduceOp::kMin:
      for (std::int64_t i = 0; i < count; ++i) sum[i] = std::min(sum[i], more[i]);
      break;
    case ReduceOp::kMax:
      for (std::int64_t i = 0; i < count; ++i) sum[i] = std::max(sum[i], more[i]);
      break;
  }
}

// Reduces this rank's share of tensor `index` of all ranks and writes it into all of them.
template <class T>
void reduce_share(const Meeting& meeting, int rank, std::size_t index, ReduceOp op) {
  constexpr std::int64_t kBlock =
      2048;                           // elements, so that a block of sums stays in the first cache
  constexpr std::int64_t kLine = 16;  // shares begin at cache lines
  const std::int64_t count = meeting.call(0).tensors[index].numel(), size = meeting.size();
  const std::int64_t share = ((count + size - 1) / size + kLine - 1) / kLine * kLine;
  const std::int64_t begin = std::min(count, rank * share), end = std::min(count, begin + share);
  T sums[kBlock];
  for (std::int64_t at = begin; at < end; at += kBlock) {
    const std::int64_t block = std::min(kBlock, end - at);
    const auto data = [&](int from) {
      return meeting.call(from).tensors[index].template mutable_data_ptr<T>() + at;
    };
    std::copy_n(data(0), block, sums);
    for (int from = 1; from < size; ++from) combine(sums, data(from), block, op);
    if (op == ReduceOp::kMean)
      for (std::int64_t i = 0; i < block; ++i) sums[i] /= static_cast<T>(size);
    for (int to = 0; to < size; ++to) std::copy_n(sums, block, data(to));
  }
}

class InProcess final : public Collective {
 public:
  InProcess(std::shared_ptr<Meeting> meeting, int rank)
      : meeting_(std::move(meeting)), rank_(rank) {}
  ~InProcess() override { meeting_->leave(rank_); }

  int rank() const override { return rank_; }
  int size() const override { return meeting_->size(); }
  void leave() override { meeting_->leave(rank_); }

  Result<void> all_reduce(std::span<const at::Tensor> tensors, ReduceOp op,
                          std::string_view name) override {
    const Call call{Kind::kAllReduce, static_cast<int>(op), tensors, name};
    return together(call, [&] {
      for (std::size_t i = 0; i < tensors.size(); ++i) {
        const at::ScalarType type = tensors[i].scalar_type();
        if (type == at::kFloat) reduce_share<float>(*meeting_, rank_, i, op);
        if (type == at::kDouble) reduce_share<double>(*meeting_, rank_, i, op);
        if (type == at::kLong) reduce_share<std::int64_t>(*meeting_, rank_, i, op);
      }
    });
  }

  Result<std::vector<at::Tensor>> all_gather(std::span<const at::Tensor> tensors,
                                             std::string_view name) override {
    std::vector<at::Tensor> gathered;
    const Call call{Kind::kAllGather, 0, tensors, name};
    const Result<void> done = together(call, [&] {
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
    const Call call{Kind::kBroadcast, from, tensors, name};
    return together(call, [&] {
      if (rank_ == from) return;
      for (std::size_t i = 0; i < tensors.size(); ++i)
        std::memcpy(tensors[i].mutable_data_ptr(), meeting_->call(from).tensors[i].const_data_ptr(),
                    tensors[i].nbytes());
    });
  }

 private:
  template <class Work>
  Result<void> together(const Call& call, Work work) {
    if (Result<void> entered = meeting_->enter(rank_, call); !entered) return entered;
    const c10::NoGradGuard no_grad;
    work();
    return meeting_->finish(call);
  }

  std::shared_ptr<Meeting> meeting_;
  int rank_;
};

}  // namespace

std::vector<std::unique_ptr<Collective>> make_in_process_group(int size,
                                                               std::chrono::milliseconds timeout) {
  const auto meeting = std::make_shared<Meeting>(size, timeout);
  std::vector<std::unique_ptr<Collective>> ranks;
  for (int rank = 0; rank < size; ++rank)
    ranks.push_back(std::make_unique<InProcess>(meeting, rank));
  return ranks;
}

}  // namespace troupe::learners
