#include "actors/runtime/link.hpp"

#include <algorithm>
#include <utility>

namespace troupe::actors {

Link::Link(LinkOptions options, Random random, Time now)
    : options_(options), random_(random), until_(now), not_running_(now) {}

Link::Action Link::tick(Time now) {
  if (state_ == State::kRunning || state_ == State::kGivenUp) return Action::kNothing;
  if (options_.grace.count() > 0 && now - not_running_ >= options_.grace) {
    state_ = State::kGivenUp;
    ++attempt_;  // whatever is still under way comes too late
    return Action::kGiveUp;
  }
  if (state_ == State::kConnecting && std::exchange(connect_, false)) return Action::kConnect;
  if (now < until_) return Action::kNothing;
  if (state_ != State::kBackingOff) {
    back_off(state_ == State::kProbing ? "the probe got no answer" : "the connect got no answer",
             now);
    return Action::kNothing;
  }
  state_ = State::kProbing;
  until_ = now + options_.probe_limit;
  ++attempt_;
  return Action::kProbe;
}

bool Link::answered(std::uint64_t attempt, Time now) {
  if (attempt != attempt_ || state_ != State::kProbing) return false;
  state_ = State::kConnecting;
  until_ = now + options_.connect_limit;
  connect_ = true;
  return true;
}

bool Link::connected(std::uint64_t attempt, Time) {
  if (attempt != attempt_ || state_ != State::kConnecting) return false;
  state_ = State::kRunning;
  connect_ = false;
  failures_ = 0;
  reason_.clear();
  return true;
}

bool Link::failed(std::uint64_t attempt, const std::string& reason, Time now) {
  if (attempt != attempt_ || (state_ != State::kProbing && state_ != State::kConnecting))
    return false;
  back_off(reason, now);
  return true;
}

bool Link::lost(std::uint64_t attempt, const std::string& reason, Time now) {
  if (attempt != attempt_ || state_ != State::kRunning) return false;
  ++losses_;
  not_running_ = now;
  back_off(reason, now);
  return true;
}

void Link::back_off(const std::string& reason, Time now) {
  double delay = static_cast<double>(options_.first_delay.count());
  const double longest = static_cast<double>(options_.longest_delay.count());
  for (int i = 0; i < failures_ && delay < longest; ++i) delay *= 2;
  delay = std::min(delay, longest) * random_.uniform(1 - options_.jitter, 1);
  ++failures_;
  ++attempt_;
  connect_ = false;
  reason_ = reason;
  state_ = State::kBackingOff;
  until_ = now + std::chrono::duration_cast<Time::duration>(
                     std::chrono::duration<double, std::milli>(delay));
}

const char* name_of(Link::State state) {
  switch (state) {
    case Link::State::kBackingOff:
      return "backing off";
    case Link::State::kProbing:
      return "probing";
    case Link::State::kConnecting:
      return "connecting";
    case Link::State::kRunning:
      return "running";
    case Link::State::kGivenUp:
      break;
  }
  return "given up";
}

}  // namespace troupe::actors
