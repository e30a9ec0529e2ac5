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

const char* name_of(LimiterKind kind) {
  switch (kind) {
    case LimiterKind::kRatio:
      return "ratio";
    case LimiterKind::kQueue:
      return "queue";
    case LimiterKind::kStack:
      return "stack";
    case LimiterKind::kAllowance:
      return "allowance";
  }
  return "unknown";
}

double RateLimiter::cursor() const {
  return static_cast<double>(inserts_) * options_.samples_per_insert -
         static_cast<double>(samples_) + shift_;
}

bool RateLimiter::can_insert(std::uint64_t n) const {
  if (n == 0) return true;
  if (options_.is_allowance()) return inserts_ + n <= allowance_;
  if (!options_.is_ratio()) return held() + n <= static_cast<std::uint64_t>(options_.size);
  if (options_.samples_per_insert == 0 || starved()) return true;
  return cursor() + static_cast<double>(n) * options_.samples_per_insert <= options_.max_diff();
}

bool RateLimiter::can_sample(std::uint64_t n) const {
  if (n == 0) return true;
  if (options_.is_allowance()) return held() > 0;
  if (!options_.is_ratio()) return held() >= n;
  if (held() < static_cast<std::uint64_t>(options_.min_size)) return false;
  if (options_.samples_per_insert == 0) return true;
  return cursor() - static_cast<double>(n) >= options_.min_diff();
}

bool RateLimiter::starved() const {
  const auto min_size = static_cast<std::uint64_t>(options_.min_size);
  return inserts_ >= min_size && held() < min_size;
}

std::string RateLimiter::insert_refusal(std::uint64_t n) const {
  if (options_.is_ratio() || options_.is_allowance() ||
      n <= static_cast<std::uint64_t>(options_.size))
    return {};
  return "it completes " + std::to_string(n) + " items at once, more than the " +
         name_of(options_.kind) + " of " + std::to_string(options_.size) + " ever holds";
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
  if (options_.is_allowance())
    return "insert waits for samples: " + std::to_string(inserts_) + " + " + std::to_string(n) +
           " items would pass the " + std::to_string(allowance_) + " that are allowed";
  if (!options_.is_ratio())
    return "insert waits for samples: " + std::to_string(n) + " more items do not fit the " +
           name_of(options_.kind) + ", which holds " + std::to_string(held()) + " of " +
           std::to_string(options_.size);
  return "insert waits for samples: cursor " + number(cursor()) + " + " + std::to_string(n) +
         " items x " + number(options_.samples_per_insert) + " samples would pass " +
         number(options_.max_diff());
}

std::string RateLimiter::sample_block_reason(std::uint64_t n) const {
  if (can_sample(n)) return {};
  if (options_.is_allowance()) return "sample waits for inserts: no item is held";
  if (!options_.is_ratio())
    return "sample waits for inserts: " + std::to_string(n) + " items are wanted and the " +
           name_of(options_.kind) + " holds " + std::to_string(held());
  if (held() < static_cast<std::uint64_t>(options_.min_size))
    return "sample waits for min_size " + std::to_string(held()) + "/" +
           std::to_string(options_.min_size);
  return "sample waits for inserts: cursor " + number(cursor()) + " - " + std::to_string(n) +
         " samples would fall below " + number(options_.min_diff());
}

std::string RateLimiter::state_text() const {
  std::string text;
  if (options_.is_allowance())
    text = std::to_string(inserts_) + " inserted of " + std::to_string(allowance_) + " allowed";
  else if (!options_.is_ratio())
    text = std::string(name_of(options_.kind)) + " " + std::to_string(held()) + "/" +
           std::to_string(options_.size);
  else if (options_.samples_per_insert == 0)
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
  out.put(static_cast<std::uint8_t>(options_.kind));
  out.put(options_.size);
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
  saved.kind = static_cast<LimiterKind>(in.take<std::uint8_t>());
  in.get(saved.size);
  if (saved == options_) return false;
  if (options_.is_allowance()) return true;
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
