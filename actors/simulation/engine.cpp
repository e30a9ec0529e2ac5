// Implements the clock.
#include "actors/simulation/engine.hpp"

#include <algorithm>

namespace troupe::actors::simulation {
namespace {

Engine::Time::duration ticks(double seconds) {
  return std::chrono::duration_cast<Engine::Time::duration>(
      std::chrono::duration<double>(std::max(0.0, seconds)));
}

}  // namespace

void Engine::after(double seconds, Action action) {
  events_waiting_.push_back({now_ + ticks(seconds), order_++, std::move(action)});
  std::push_heap(events_waiting_.begin(), events_waiting_.end(), later);
}

void Engine::run_until(double seconds) {
  const Time end = kBegin + ticks(seconds);
  while (!events_waiting_.empty() && events_waiting_.front().at <= end) {
    std::pop_heap(events_waiting_.begin(), events_waiting_.end(), later);
    Event event = std::move(events_waiting_.back());
    events_waiting_.pop_back();
    now_ = event.at;
    ++events_;
    event.action();
  }
  now_ = std::max(now_, end);
}

}  // namespace troupe::actors::simulation
