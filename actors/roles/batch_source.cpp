// Implements the exchange of batches with the filling thread.
#include "actors/roles/batch_source.hpp"

namespace troupe::actors {

using std::chrono::milliseconds;

BatchSource::BatchSource(std::vector<Column> columns, const SourceOptions& options)
    : items_(static_cast<std::size_t>(options.items)),
      counted_(options.counted > 0 ? static_cast<std::size_t>(options.counted) : items_),
      limiter_(options.limiter),
      first_samples_(options.limiter.samples()) {
  // One more than wait filled: the learner holds it.
  for (std::int64_t i = 0; i < options.ahead + 1; ++i) {
    batches_.push_back(std::make_unique<replay::Batch>(columns, options.items));
    empty_.push_back(batches_.back().get());
  }
}

replay::Batch* BatchSource::next(milliseconds timeout) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, timeout, [this] { return !filled_.empty(); })) return nullptr;
  replay::Batch* batch = filled_.front();
  filled_.pop_front();
  return batch;
}

void BatchSource::release(replay::Batch* batch) {
  {
    const std::lock_guard lock(mutex_);
    empty_.push_back(batch);
    ++released_;
  }
  changed_.notify_all();
}

std::string BatchSource::waiting_on() const {
  const std::lock_guard lock(mutex_);
  return filled_.empty() ? reason_ : std::string();
}

SourceFigures BatchSource::figures() const {
  SourceFigures figures;
  {
    const std::lock_guard lock(mutex_);
    figures.priorities = priorities_;
    figures.priorities_lost = priorities_lost_;
  }
  const std::lock_guard lock(limiter_mutex_);
  figures.cursor = limiter_.cursor();
  figures.samples_per_insert = limiter_.measured_spi();
  figures.inserted = limiter_.inserted();
  return figures;
}

std::string BatchSource::save_limiter() const {
  std::uint64_t consumed = first_samples_;
  {
    const std::lock_guard lock(mutex_);
    consumed += released_ * counted_;
  }
  const std::lock_guard lock(limiter_mutex_);
  return limiter_.save(consumed);
}

replay::Batch* BatchSource::take_empty(const std::stop_token& stop, milliseconds timeout) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, stop, timeout, [this] { return !empty_.empty(); })) return nullptr;
  replay::Batch* batch = empty_.front();
  empty_.pop_front();
  return batch;
}

void BatchSource::give_filled(replay::Batch* batch) {
  {
    const std::lock_guard lock(mutex_);
    filled_.push_back(batch);
    reason_.clear();
  }
  changed_.notify_all();
}

void BatchSource::set_reason(std::string reason) {
  const std::lock_guard lock(mutex_);
  reason_ = std::move(reason);
}

void BatchSource::count_priorities(std::size_t handed, std::size_t lost) {
  const std::lock_guard lock(mutex_);
  priorities_ += handed;
  priorities_lost_ += lost;
}

}  // namespace troupe::actors
