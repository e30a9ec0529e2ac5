// Implements the sharing of cores, by the progress that all running threads make alike.
#include "actors/simulation/host.hpp"

#include <algorithm>

namespace troupe::actors::simulation {
namespace {

constexpr double kLeastShare = 0.05;  // of a core, whatever the background takes
constexpr double kRounding = 1e-9;    // s; the engine's clock has ticks

}  // namespace

Host::Host(Engine& engine, int cores, double full_speed)
    : engine_(engine), cores_(cores), full_speed_(full_speed) {}

double Host::available() const { return std::max(kLeastShare, cores_ - background_); }

double Host::rate() const {
  const auto threads = static_cast<double>(running_.size());
  const double busy = std::min<double>(cores_, threads + background_);
  const double slower = cores_ > 1 && busy > 1 ? (busy - 1) / (cores_ - 1) : 0;
  return (1 - (1 - full_speed_) * slower) * std::min(1.0, available() / threads);
}

void Host::advance() {
  const double now = engine_.seconds(), passed = now - at_;
  at_ = now;
  used_ += passed * std::min<double>(cores_, background_);
  if (running_.empty()) return;
  used_ += passed * std::min(static_cast<double>(running_.size()), available());
  progress_ += passed * rate();
}

double Host::used() {
  advance();
  return used_;
}

void Host::run(double seconds, Engine::Action done) {
  advance();
  running_.push_back({progress_ + std::max(0.0, seconds), order_++, std::move(done)});
  std::push_heap(running_.begin(), running_.end(), later);
  schedule();
}

void Host::schedule() {
  const std::uint64_t mine = ++generation_;
  if (running_.empty()) return;
  engine_.after((running_.front().until - progress_) / rate(), [this, mine] {
    if (mine == generation_) finish();
  });
}

void Host::finish() {
  advance();
  std::vector<Engine::Action> done;
  while (!running_.empty() && running_.front().until <= progress_ + kRounding) {
    std::pop_heap(running_.begin(), running_.end(), later);
    done.push_back(std::move(running_.back().done));
    running_.pop_back();
  }
  schedule();
  for (Engine::Action& action : done) action();
}

}  // namespace troupe::actors::simulation
