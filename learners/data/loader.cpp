#include "learners/data/loader.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "envs/spec/random.hpp"

namespace troupe::learners::data {
namespace {

constexpr std::int64_t kClaim = 8;  // pictures that a thread takes at once: small ones take 10 us

Result<Image> picture(const Record& record, int channels, const LoaderOptions& options,
                      std::uint64_t epoch, std::int64_t position) {
  const AugmentOptions& augment = options.augment;
  const auto* image = std::get_if<Image>(&record.content);
  if (image != nullptr && !options.training) return evaluation_picture(*image, augment);
  const auto* bytes = std::get_if<std::vector<std::uint8_t>>(&record.content);
  if (bytes != nullptr && !options.training)
    return evaluation_picture(*bytes, record.name, channels, augment);
  Random random(stream_seed(options.seed, "augment", epoch, static_cast<std::uint64_t>(position)));
  return image != nullptr ? training_picture(*image, augment, random)
                          : training_picture(*bytes, record.name, channels, augment, random);
}

}  // namespace

Loader::Loader(std::shared_ptr<const DataSet> set, const LoaderOptions& options)
    : set_(std::move(set)), options_(options) {
  keep_pixel_memory();
  for (std::int64_t i = 0; i < std::max<std::int64_t>(1, options.threads); ++i)
    threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
}

Loader::~Loader() {
  for (std::jthread& thread : threads_) thread.request_stop();
}

std::shared_ptr<const EpochOrder> Loader::order_of(std::uint64_t epoch) {
  for (const auto& [number, order] : orders_)
    if (number == epoch) return order;
  if (orders_.size() == 2) orders_.erase(orders_.begin());
  const OrderOptions options{.size = set_->size(),
                             .seed = options_.seed,
                             .shuffle = options_.training,
                             .window = options_.window,
                             .file_starts = set_->file_starts()};
  return orders_.emplace_back(epoch, std::make_shared<const EpochOrder>(options, epoch)).second;
}

void Loader::request(std::uint64_t epoch, std::int64_t begin, std::int64_t end) {
  auto job = std::make_shared<Job>();
  job->order = order_of(epoch);
  job->begin = begin;
  job->rows = end - begin;
  job->out.epoch = epoch;
  job->out.side = static_cast<int>(options_.augment.size);
  job->out.channels = set_->channels();
  const auto rows = static_cast<std::size_t>(job->rows);
  job->out.pixels.resize(rows * static_cast<std::size_t>(job->out.side) * job->out.side *
                         job->out.channels);
  job->out.labels.resize(rows);
  job->failures.resize(rows);
  job->codes.resize(rows);
  for (std::int64_t position = begin; position < end; ++position)
    job->out.positions.push_back(position);
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  wanted_.notify_all();
}

void Loader::work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (true) {
    std::shared_ptr<Job> job;
    const auto find = [&] {
      const auto found = std::find_if(jobs_.begin(), jobs_.end(), [](const auto& candidate) {
        return candidate->claimed < candidate->rows;
      });
      job = found == jobs_.end() ? nullptr : *found;
      return job != nullptr;
    };
    if (!wanted_.wait(lock, stop, find)) return;
    const std::int64_t first = job->claimed, last = std::min(job->rows, first + kClaim);
    job->claimed = last;
    lock.unlock();
    for (std::int64_t row = first; row < last && !stop.stop_requested(); ++row) fill(*job, row);
    lock.lock();
    job->done += last - first;
    if (job->done == job->rows) finished_.notify_all();
  }
}

void Loader::fill(Job& job, std::int64_t row) const {
  const auto at = static_cast<std::size_t>(row);
  const auto failed = [&](const Error& error) {
    job.failures[at] = error.message;
    job.codes[at] = error.code;
  };
  auto record = set_->read((*job.order)[job.begin + row]);
  if (!record) return failed(record.error());
  const auto image = picture(*record, job.out.channels, options_, job.out.epoch, job.begin + row);
  if (!image) return failed(image.error());
  if (image->channels != job.out.channels)
    return failed({ErrorCode::kCorrupt, record->name + ": it has " +
                                            std::to_string(image->channels) + " channels, not " +
                                            std::to_string(job.out.channels)});
  std::copy(image->pixels.begin(), image->pixels.end(),
            job.out.pixels.begin() + static_cast<std::ptrdiff_t>(at * image->pixels.size()));
  job.out.labels[at] = record->label;
}

Result<Pictures> Loader::next() {
  std::shared_ptr<Job> job;
  {
    std::unique_lock lock(mutex_);
    if (jobs_.empty()) return fail(ErrorCode::kUnavailable, "no pictures were asked for");
    job = jobs_.front();
    const auto start = std::chrono::steady_clock::now();
    finished_.wait(lock, [&] { return job->done == job->rows; });
    waited_ += std::chrono::steady_clock::now() - start;
    jobs_.pop_front();
  }
  return finish(*job);
}

Result<Pictures> Loader::finish(Job& job) const {
  Pictures& out = job.out;
  const std::size_t bytes =
      static_cast<std::size_t>(out.side) * static_cast<std::size_t>(out.side) * out.channels;
  std::size_t kept = 0;
  for (std::size_t row = 0; row < job.failures.size(); ++row) {
    if (!job.failures[row].empty()) {
      if (job.codes[row] != ErrorCode::kCorrupt || !options_.skip_corrupt)
        return fail(job.codes[row], job.failures[row]);
      out.corrupt.push_back(std::move(job.failures[row]));
      continue;
    }
    if (kept != row) {
      std::copy_n(out.pixels.begin() + static_cast<std::ptrdiff_t>(row * bytes), bytes,
                  out.pixels.begin() + static_cast<std::ptrdiff_t>(kept * bytes));
      out.labels[kept] = out.labels[row];
      out.positions[kept] = out.positions[row];
    }
    ++kept;
  }
  out.pixels.resize(kept * bytes);
  out.labels.resize(kept);
  out.positions.resize(kept);
  return std::move(out);
}

}  // namespace troupe::learners::data
