// Implements buckets, the hooks that fill them, and compression.
#include "learners/replicas/gradient_reducer.hpp"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>

#include <stdexcept>

#include "models/torch_precompiled.hpp"

namespace troupe::learners {

// Runs after a parameter's gradient was accumulated; a pass that builds a graph puts it elsewhere.
class GradientReducer::ReadyHook final : public torch::autograd::FunctionPostHook {
 public:
  ReadyHook(GradientReducer& reducer, std::size_t bucket, FlatTensors& flat, std::size_t parameter)
      : reducer_(reducer), bucket_(bucket), flat_(flat), parameter_(parameter) {}
  torch::autograd::variable_list operator()(
      const torch::autograd::variable_list& outputs,
      const torch::autograd::variable_list& /*inputs*/) override {
    reducer_.ready(bucket_, flat_, parameter_);
    return outputs;
  }

 private:
  GradientReducer& reducer_;
  std::size_t bucket_;
  FlatTensors& flat_;
  std::size_t parameter_;
};

GradientReducer::GradientReducer(std::vector<FlatTensors>& flat, Collective& collective,
                                 const GradientOptions& options)
    : collective_(collective), options_(options) {
  for (FlatTensors& each : flat) make_buckets(each);
  for (Bucket& bucket : buckets_)
    if (options.travel_as != at::kFloat && bucket.gradients.scalar_type() == at::kFloat)
      bucket.residual = at::zeros_like(bucket.gradients);
  if (options.bucket_bytes > 0) thread_ = std::jthread([this] { run(); });
}

GradientReducer::~GradientReducer() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  // Parameters may outlive this object; their hooks must not.
  for (const Hook& hook : hooks_) hook.accumulator->del_post_hook(hook.key);
}

// Backward passes reach the last parameters first, so buckets begin at the end.
void GradientReducer::make_buckets(FlatTensors& flat) {
  const at::Tensor& gradients = flat.gradients();
  const auto& slices = flat.slices();
  std::int64_t end = gradients.numel();
  std::size_t last = slices.size();
  while (last > 0) {
    std::size_t first = last - 1;
    const auto bytes = [&] {
      return (end - slices[first].offset) * static_cast<std::int64_t>(gradients.element_size());
    };
    while (first > 0 && (options_.bucket_bytes == 0 || bytes() < options_.bucket_bytes)) --first;
    Bucket bucket;
    bucket.gradients = gradients.narrow(0, slices[first].offset, end - slices[first].offset);
    bucket.parameters = last - first;
    if (options_.bucket_bytes > 0)
      for (std::size_t i = first; i < last; ++i) {
        auto accumulator = torch::autograd::impl::grad_accumulator(flat.parameters()[i]);
        const std::uintptr_t key = accumulator->add_post_hook(
            std::make_unique<ReadyHook>(*this, buckets_.size(), flat, i));
        hooks_.push_back({std::move(accumulator), key});
      }
    buckets_.push_back(std::move(bucket));
    end = slices[first].offset;
    last = first;
  }
}

void GradientReducer::begin(const std::string& call) {
  std::unique_lock lock(mutex_);
  // Of a pass that nobody finished.
  changed_.wait(lock, [&] { return reduced_ == launched_ || !result_; });
  for (Bucket& bucket : buckets_) bucket.missing = bucket.parameters;
  call_ = call;
  launched_ = reduced_ = 0;
  armed_ = options_.bucket_bytes > 0;
}

void GradientReducer::ready(std::size_t index, FlatTensors& flat, std::size_t parameter) {
  std::unique_lock lock(mutex_);
  if (!armed_) return;  // another optimizer's backward pass
  Bucket& bucket = buckets_[index];
  if (bucket.missing == 0) {
    late_ = true;
    return;
  }
  flat.collect_gradient(parameter);
  --bucket.missing;
  launch(lock);
}

// In order on every replica, whichever bucket is full first.
void GradientReducer::launch(std::unique_lock<std::mutex>&) {
  while (launched_ < buckets_.size() && buckets_[launched_].missing == 0) ++launched_;
  changed_.notify_all();
}

Result<void> GradientReducer::finish(const std::string& call) {
  if (options_.bucket_bytes == 0) {
    for (Bucket& bucket : buckets_)
      if (Result<void> done = reduce(bucket, call); !done) return done;
    return {};
  }
  std::unique_lock lock(mutex_);
  if (!armed_) throw std::logic_error("An optimizer steps without zero_grad() before it.");
  armed_ = false;
  if (late_) throw std::logic_error("A second backward pass came after gradients were reduced.");
  // What the backward pass did not reach has a gradient of zero.
  launched_ = buckets_.size();
  changed_.notify_all();
  changed_.wait(lock, [&] { return reduced_ == buckets_.size() || !result_; });
  return result_;
}

Result<void> GradientReducer::reduce(Bucket& bucket, const std::string& call) const {
  const c10::NoGradGuard no_grad;
  if (!bucket.residual.defined())
    return collective_.all_reduce(std::span(&bucket.gradients, 1), ReduceOp::kMean, call);
  bucket.residual += bucket.gradients;
  const at::Tensor sent = bucket.residual.to(options_.travel_as);
  bucket.residual -= sent;
  Result<void> done = collective_.all_reduce(std::span(&sent, 1), ReduceOp::kMean, call);
  if (done) bucket.gradients.copy_(sent);
  return done;
}

void GradientReducer::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ending_ || (reduced_ < launched_ && result_); });
    if (ending_) return;
    const std::size_t index = reduced_;
    const std::string call = call_ + ", bucket " + std::to_string(index);
    lock.unlock();
    Result<void> done;
    try {
      done = reduce(buckets_[index], call);
    } catch (const std::exception& error) {
      done = fail(ErrorCode::kInternal, call + " failed: " + error.what());
    }
    lock.lock();
    if (!done)
      result_ = std::move(done);
    else
      ++reduced_;
    changed_.notify_all();
  }
}

}  // namespace troupe::learners
