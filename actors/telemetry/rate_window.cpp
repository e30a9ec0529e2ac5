// See rate_window.hpp. No thread rule: plain value.
#include "actors/telemetry/rate_window.hpp"

#include <limits>

namespace troupe::actors::telemetry {
namespace {

constexpr double kMergeWithin = 0.25;
constexpr double kForgetAfter = 60;
constexpr double kStaleAfter = 3;

}  // namespace

void RateWindow::add(double now, double total) {
  if (!samples_.empty() && total < samples_.back().total) samples_.clear();
  const std::size_t size = samples_.size();
  if (size >= 2 && now - samples_[size - 2].time < kMergeWithin) samples_.pop_back();
  samples_.push_back({now, total});
  while (samples_.size() > 2 && now - samples_[1].time > kForgetAfter) samples_.pop_front();
}

double RateWindow::rate(double now, double horizon) const {
  if (samples_.size() < 2) return std::numeric_limits<double>::quiet_NaN();
  const Sample& last = samples_.back();
  // The newest sample at or before the horizon, so that the whole of it is covered; the last one
  // itself when all of them are that old, which gives 0.
  const Sample* first = &samples_.front();
  for (const Sample& sample : samples_) {
    if (sample.time > now - horizon) break;
    first = &sample;
  }
  const double end = now - last.time > kStaleAfter ? now : last.time;
  if (end <= first->time) return std::numeric_limits<double>::quiet_NaN();
  return (last.total - first->total) / (end - first->time);
}

}  // namespace troupe::actors::telemetry
