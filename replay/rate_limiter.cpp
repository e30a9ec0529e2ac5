// The limiter's arithmetic and its explanations.
#include "replay/rate_limiter.hpp"

#include <algorithm>
#include <cstdio>

namespace troupe::replay {
namespace {

// Numbers as a person writes them: no trailing zeros.
std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.10g", value);
  return text;
}

}  // namespace

double RateLimiter::cursor() const {
  return static_cast<double>(inserts_) * options_.samples_per_insert -
         static_cast<double>(samples_) + shift_;
}

bool RateLimiter::can_insert(std::uint64_t n) const {
  if (n == 0 || options_.samples_per_insert == 0) return true;
  return cursor() + static_cast<double>(n) * options_.samples_per_insert <= options_.max_diff();
}

bool RateLimiter::can_sample(std::uint64_t n) const {
  if (n == 0) return true;
  if (held() < static_cast<std::uint64_t>(options_.min_size)) return false;
  if (options_.samples_per_insert == 0) return true;
  return cursor() - static_cast<double>(n) >= options_.min_diff();
}

void RateLimiter::commit_insert(std::uint64_t n) { inserts_ += n; }
void RateLimiter::commit_balanced(std::uint64_t n) {
  const auto min_size = static_cast<std::uint64_t>(options_.min_size);
  const std::uint64_t lacking = min_size - std::min(min_size, inserts_);
  inserts_ += n;
  shift_ -= options_.samples_per_insert * static_cast<double>(n - std::min(n, lacking));
}

void RateLimiter::commit_sample(std::uint64_t n) { samples_ += n; }
void RateLimiter::commit_remove(std::uint64_t n) { removed_ += n; }

std::string RateLimiter::insert_block_reason(std::uint64_t n) const {
  if (can_insert(n)) return {};
  return "insert waits for samples: cursor " + number(cursor()) + " + " + std::to_string(n) +
         " items x " + number(options_.samples_per_insert) + " samples would pass " +
         number(options_.max_diff());
}

std::string RateLimiter::sample_block_reason(std::uint64_t n) const {
  if (can_sample(n)) return {};
  if (held() < static_cast<std::uint64_t>(options_.min_size))
    return "sample waits for min_size " + std::to_string(held()) + "/" +
           std::to_string(options_.min_size);
  return "sample waits for inserts: cursor " + number(cursor()) + " - " + std::to_string(n) +
         " samples would fall below " + number(options_.min_diff());
}

std::string RateLimiter::state_text() const {
  std::string text;
  if (options_.samples_per_insert == 0)
    text = "no ratio";
  else
    text = "cursor " + number(cursor()) + " in [" + number(options_.min_diff()) + ", " +
           number(options_.max_diff()) + "]";
  for (const std::string& reason : {insert_block_reason(1), sample_block_reason(1)})
    if (!reason.empty()) text += "; " + reason;
  return text;
}

double RateLimiter::measured_spi() const {
  const auto min_size = static_cast<std::uint64_t>(options_.min_size);
  if (inserts_ <= min_size) return 0;
  return static_cast<double>(samples_) / static_cast<double>(inserts_ - min_size);
}

void RateLimiter::save(ByteWriter& out) const {
  out.put(inserts_);
  out.put(samples_);
  out.put(removed_);
  out.put(shift_);
  out.put(options_.min_size);
  out.put(options_.samples_per_insert);
  out.put(options_.error_buffer);
}

bool RateLimiter::load(ByteReader& in) {
  in.get(inserts_);
  in.get(samples_);
  in.get(removed_);
  in.get(shift_);
  LimiterOptions saved;
  in.get(saved.min_size);
  in.get(saved.samples_per_insert);
  in.get(saved.error_buffer);
  if (saved == options_) return false;
  const double spi = options_.samples_per_insert;
  const double size = static_cast<double>(held());
  double target = spi * size;
  if (size >= static_cast<double>(options_.min_size)) {
    const double was = static_cast<double>(inserts_) * saved.samples_per_insert -
                       static_cast<double>(samples_) + shift_;
    const double middle = saved.samples_per_insert * static_cast<double>(saved.min_size);
    const double ahead = saved.samples_per_insert == 0 ? 0 : was - middle;
    target = spi * static_cast<double>(options_.min_size) +
             std::clamp(ahead, -options_.error_buffer, options_.error_buffer);
  }
  shift_ = 0;
  shift_ = target - cursor();
  return true;
}

}  // namespace troupe::replay
