// Implements the judgement.
#include "actors/roles/actor_scaling.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::actors {
namespace {

double ms_between(ActorScaling::Time from, ActorScaling::Time to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

std::string percent(double share) {
  return std::to_string(static_cast<int>(std::lround(100 * share))) + " %";
}

// Of the time that the actors had between two loads.
double insert_share(const ActorLoad& from, const ActorLoad& to, double ms) {
  return (to.insert_blocked_ms - from.insert_blocked_ms) /
         (ms * static_cast<double>(std::max<std::int64_t>(1, to.actors)));
}

double sample_share(const ActorLoad& from, const ActorLoad& to, double ms) {
  return (to.sample_blocked_ms - from.sample_blocked_ms) / ms;
}

bool falls(const ActorLoad& from, const ActorLoad& to) {
  return to.insert_blocked_ms < from.insert_blocked_ms ||
         to.sample_blocked_ms < from.sample_blocked_ms || to.steps < from.steps ||
         to.actors != from.actors;
}

}  // namespace

void ActorScaling::restart(const ActorLoad& load, Time now) {
  before_ = load;
  since_ = now;
  wish_ = Wish::kStay;
}

ActorScaling::Decision ActorScaling::change(std::int64_t actors, std::string why, Time now) {
  judged_from_ = now + options_.settle;
  before_.reset();
  wish_ = Wish::kStay;
  return {actors, std::move(why)};
}

std::optional<ActorScaling::Decision> ActorScaling::look(const ActorLoad& load, Time now) {
  if (now < judged_from_) return std::nullopt;
  const bool anew = !before_ || falls(last_, load);
  if (anew) restart(load, now);
  auto decision = anew ? std::nullopt : judge(load, now);
  last_ = load;
  last_at_ = now;
  return decision;
}

std::optional<ActorScaling::Decision> ActorScaling::judge(const ActorLoad& load, Time now) {
  const double ms = ms_between(last_at_, now);
  if (ms <= 0) return std::nullopt;
  const double inserts = insert_share(last_, load, ms), samples = sample_share(last_, load, ms);
  Wish wish = Wish::kStay;
  if (samples > options_.much && inserts < options_.little) wish = Wish::kMore;
  if (inserts > options_.much && samples < options_.little) wish = Wish::kFewer;
  if (wish != wish_) {
    restart(last_, last_at_);
    wish_ = wish;
  }
  const double whole = ms_between(since_, now);
  if (whole < static_cast<double>(options_.hold.count())) return std::nullopt;
  const double rate = (load.steps - before_->steps) / whole * 1000;
  if (rate_before_growth_) {
    const double was = *std::exchange(rate_before_growth_, std::nullopt);
    if (rate < was * (1 + options_.gain)) {
      no_growth_until_ = now + options_.rest;
      return change(std::clamp(actors_before_growth_, options_.min, options_.max),
                    std::to_string(load.actors) + " actors make no more steps than " +
                        std::to_string(actors_before_growth_) + " did (" +
                        std::to_string(std::lround(rate)) + "/s after " +
                        std::to_string(std::lround(was)) + "/s)",
                    now);
    }
  }
  const std::string shares =
      "over " + std::to_string(static_cast<int>(whole / 1000)) + " s actors waited to insert for " +
      percent(insert_share(*before_, load, whole)) +
      " of their time, the learner for samples for " + percent(sample_share(*before_, load, whole));
  if (wish_ == Wish::kMore && load.actors < options_.max &&
      (!no_growth_until_ || now >= *no_growth_until_)) {
    rate_before_growth_ = rate;
    actors_before_growth_ = load.actors;
    return change(std::min(options_.max, load.actors + std::max<std::int64_t>(1, load.actors / 2)),
                  shares, now);
  }
  if (wish_ == Wish::kFewer && load.actors > options_.min)
    return change(load.actors - 1, shares, now);
  return std::nullopt;
}

}  // namespace troupe::actors
