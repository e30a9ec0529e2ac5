// The ratio's arithmetic. How the room is dealt out is in global_limiter_grants.cpp.
#include "actors/roles/global_limiter.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace troupe::actors {
namespace {

using Json = nlohmann::json;

// Activity halves once that many items were inserted: long against a round trip, short against a
// run.
constexpr double kActivityItems = 1000;

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.10g", value);
  return text;
}

}  // namespace

void GlobalLimiter::report(std::size_t index, const ShardState& state) {
  if (index >= shards_.size()) shards_.resize(index + 1);
  Shard& shard = shards_[index];
  if (shard.known && state.epoch < shard.state.epoch) return;
  if (shard.known && state.epoch == shard.state.epoch && state.inserted < shard.state.inserted)
    return;  // overtaken by a later one
  const bool new_life = !shard.known || state.epoch > shard.state.epoch;
  if (new_life) {
    if (shard.known && shard.state.inserted > state.restored)
      lost_ += shard.state.inserted - state.restored;
    shard.under_way.clear();
    shard.activity = 0;
  } else {
    shard.activity += static_cast<double>(state.inserted - shard.state.inserted);
  }
  if (shared_) count_others(shard, state, new_life);
  shard.activity += new_life ? static_cast<double>(state.inserted - state.restored) : 0;
  while (!shard.under_way.empty() && shard.under_way.front().serial <= state.serial)
    shard.under_way.pop_front();
  shard.state = state;
  shard.known = shard.live = true;
  double total = 0;
  for (const Shard& each : shards_) total += each.activity;
  if (total > kActivityItems)
    for (Shard& each : shards_) each.activity /= 2;
}

// What a life that is over told of stays counted.
void GlobalLimiter::count_others(Shard& shard, const ShardState& state, bool new_life) {
  if (new_life) shard.others = 0;
  const std::uint64_t others = state.sampled - std::min(state.own, state.sampled);
  if (others <= shard.others) return;
  others_ += others - shard.others;
  shard.others = others;
}

void GlobalLimiter::gone(std::size_t index) {
  if (index >= shards_.size()) return;
  Shard& shard = shards_[index];
  shard.live = false;
  shard.under_way.clear();
  shard.state.serial = shard.state.allowed = shard.state.waiting = 0;
  shard.activity = 0;
}

std::uint64_t GlobalLimiter::inserted() const {
  std::uint64_t total = lost_;
  for (const Shard& shard : shards_) total += shard.state.inserted;
  return total;
}

std::uint64_t GlobalLimiter::prefilled() const {
  std::uint64_t total = 0;
  for (const Shard& shard : shards_) total += shard.state.prefilled;
  return total;
}

// Prefilled items meet min_size; beyond it they owe nothing (RateLimiter::commit_balanced).
std::uint64_t GlobalLimiter::owed_inserts() const {
  return inserted() + std::min(prefilled(), static_cast<std::uint64_t>(options_.min_size));
}

double GlobalLimiter::cursor_at(std::uint64_t owed) const {
  return static_cast<double>(owed) * options_.samples_per_insert - static_cast<double>(samples()) +
         shift_;
}

double GlobalLimiter::cursor() const { return cursor_at(owed_inserts()); }

std::uint64_t GlobalLimiter::held() const {
  std::uint64_t total = 0;
  for (const Shard& shard : shards_)
    if (shard.live) total += shard.state.held;
  return total;
}

double GlobalLimiter::measured_spi() const {
  const auto min_size = static_cast<std::uint64_t>(options_.min_size);
  const std::uint64_t owed = owed_inserts();
  if (owed <= min_size) return 0;
  return static_cast<double>(samples()) / static_cast<double>(owed - min_size);
}

std::vector<ShardState> GlobalLimiter::states() const {
  std::vector<ShardState> states;
  for (const Shard& shard : shards_) states.push_back(shard.live ? shard.state : ShardState{});
  return states;
}

bool GlobalLimiter::can_sample(std::uint64_t n) const {
  if (n == 0) return true;
  const std::uint64_t now = held();
  if (now == 0 || now < static_cast<std::uint64_t>(options_.min_size)) return false;
  if (options_.samples_per_insert == 0) return true;
  return cursor() - static_cast<double>(n) >= options_.min_diff();
}

std::string GlobalLimiter::sample_block_reason(std::uint64_t n) const {
  if (can_sample(n)) return {};
  if (held() < static_cast<std::uint64_t>(options_.min_size))
    return "sample waits for min_size " + std::to_string(held()) + "/" +
           std::to_string(options_.min_size);
  return "sample waits for inserts: cursor " + number(cursor()) + " - " + std::to_string(n) +
         " samples would fall below " + number(options_.min_diff());
}

std::uint64_t GlobalLimiter::room() const {
  if (options_.samples_per_insert == 0) return kUnlimited;
  const double items = (options_.max_diff() - cursor()) / options_.samples_per_insert;
  // Rounding of the division must not cost an item.
  std::uint64_t room = items > 0 ? static_cast<std::uint64_t>(std::floor(items + 1e-9)) : 0;
  // Where shards died, fewer than min_size may be held though as many were inserted. Then nothing
  // can be sampled, and inserts pass whatever the cursor says.
  const auto min_size = static_cast<std::uint64_t>(options_.min_size);
  const std::uint64_t now = held();
  if (owed_inserts() >= min_size && now < min_size) {
    std::uint64_t widest = 0;
    for (const Shard& shard : shards_) widest = std::max(widest, shard.state.waiting);
    room = std::max(room, min_size - now + widest);
  }
  return room;
}

std::string GlobalLimiter::save(std::uint64_t samples) const {
  Json shards = Json::array();
  for (const Shard& shard : shards_)
    shards.push_back({{"epoch", shard.known ? shard.state.epoch : 0},
                      {"inserted", shard.state.inserted},
                      {"prefilled", shard.state.prefilled},
                      {"sampled", shard.state.sampled}});
  return Json{{"samples", samples + others_},
              {"lost", lost_},
              {"shift", shift_},
              {"min_size", options_.min_size},
              {"samples_per_insert", options_.samples_per_insert},
              {"error_buffer", options_.error_buffer},
              {"shards", shards}}
      .dump(2);
}

Result<void> GlobalLimiter::load(const std::string& json) {
  try {
    const Json parsed = Json::parse(json);
    std::vector<Shard> shards;
    for (const Json& each : parsed.at("shards")) {
      Shard& shard = shards.emplace_back();
      shard.state.epoch = each.at("epoch").get<std::uint32_t>();
      shard.known = shard.state.epoch > 0;
      shard.state.inserted = each.at("inserted").get<std::uint64_t>();
      shard.state.prefilled = each.at("prefilled").get<std::uint64_t>();
      // To whoever loads it, all that was drawn is others'.
      shard.others = each.value("sampled", std::uint64_t{0});
    }
    const replay::LimiterOptions saved{
        .min_size = parsed.at("min_size").get<std::int64_t>(),
        .samples_per_insert = parsed.at("samples_per_insert").get<double>(),
        .error_buffer = parsed.at("error_buffer").get<double>()};
    const auto samples = parsed.at("samples").get<std::uint64_t>();
    const auto lost = parsed.at("lost").get<std::uint64_t>();
    const auto shift = parsed.at("shift").get<double>();
    shards_ = std::move(shards);
    samples_ = samples;
    lost_ = lost;
    shift_ = shift;
    if (saved == options_) return {};
    const double was =
        static_cast<double>(inserted() +
                            std::min(prefilled(), static_cast<std::uint64_t>(saved.min_size))) *
            saved.samples_per_insert -
        static_cast<double>(samples_) + shift_;
    const double ahead =
        saved.samples_per_insert == 0
            ? 0
            : std::clamp(was - saved.samples_per_insert * static_cast<double>(saved.min_size),
                         -options_.error_buffer, options_.error_buffer);
    const double spi = options_.samples_per_insert;
    const auto owed = static_cast<double>(owed_inserts());
    const auto min_size = static_cast<double>(options_.min_size);
    const double target = owed >= min_size ? spi * min_size + ahead : spi * owed;
    shift_ = 0;
    shift_ = target - cursor();
    return {};
  } catch (const Json::exception& error) {
    return fail(ErrorCode::kCorrupt,
                std::string("a saved limiter state cannot be read: ") + error.what());
  }
}

}  // namespace troupe::actors
