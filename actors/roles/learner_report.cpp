// What the learner role shows of itself: counters, gauges and what it waits for; and the
// publication of an idle one.
#include <algorithm>

#include "actors/config/checks.hpp"
#include "actors/roles/learner_role.hpp"

namespace troupe::actors {

void LearnerRole::report() {
  if (!report_due()) return;
  RoleBoard::Snapshot snapshot;
  blocked_.add_to(snapshot.counters);
  if (host_) host_->report(snapshot.counters, snapshot.gauges);
  if (leads())
    report_updates(snapshot);
  else
    led_at_.reset();
  if (source_) report_source(snapshot);
  if (is_asynchronous(context().options)) report_sent(snapshot);
  if (!blocked_.reason().empty()) snapshot.waiting_on = waiting_on();
  board().publish(std::move(snapshot));
  if (leads() && !blocked_.reason().empty() && !unsettled_) publish_newest();
}

// Whoever is idle at the end evaluates the newest parameters, not those of the last publication.
void LearnerRole::publish_newest() {
  learner_->refresh();
  const auto& newest = parameters_->newest();
  if (newest == nullptr || !published_ || newest->version != learner_->version()) publish();
}

// What this learner has sent to parameter servers.
void LearnerRole::report_sent(RoleBoard::Snapshot& snapshot) const {
  const learners::UpdatesSent now = learner_->updates_sent();
  snapshot.counters["updates_sent"] = static_cast<double>(sent_.sent + now.sent);
  snapshot.counters["updates_refused"] = static_cast<double>(sent_.refused + now.refused);
  snapshot.counters["updates_rolled_back"] =
      static_cast<double>(sent_.rolled_back + now.rolled_back);
}

void LearnerRole::count_updates() {
  const learners::UpdatesSent now = learner_->updates_sent();
  sent_ = {sent_.sent + now.sent, sent_.rolled_back + now.rolled_back, sent_.refused + now.refused};
}

// Of the whole run.
void LearnerRole::report_updates(RoleBoard::Snapshot& snapshot) {
  snapshot.counters["learner_updates"] = static_cast<double>(learner_->version());
  snapshot.counters["not_finite_updates"] = static_cast<double>(finite_.count());
  // The run's clock where nobody steps environments; the hub adds restored updates itself, and what
  // other learners made while they led.
  const std::uint64_t from = led_at_.value_or(learner_->version());
  led_at_ = std::max(from, learner_->version());
  led_ += *led_at_ - from;
  if (is_offline(context().options)) snapshot.counters["actor_steps"] = static_cast<double>(led_);
  snapshot.gauges.insert(metrics_.begin(), metrics_.end());
  if (!seat_) return;
  snapshot.gauges["learners_in_step"] = seat_->group().size;
  snapshot.gauges["learner_generation"] = seat_->group().generation;
  snapshot.gauges["states_compared"] = static_cast<double>(compared_);
}

void LearnerRole::report_source(RoleBoard::Snapshot& snapshot) const {
  const SourceFigures figures = source_->figures();
  if (leads()) {
    snapshot.gauges["limiter_cursor"] = figures.cursor;
    snapshot.gauges["samples_per_insert"] = figures.samples_per_insert;
  }
  if (is_prioritised(context().options)) {
    snapshot.counters["priorities_sent"] = static_cast<double>(figures.priorities);
    snapshot.counters["priorities_lost"] = static_cast<double>(figures.priorities_lost);
  }
}

std::string LearnerRole::waiting_on() const {
  if (unsettled_) return "a parameter server does not answer";
  if (!source_) return "the learners form a group";
  return batch_ != nullptr ? "another learner waits for its part of the batch"
                           : source_->waiting_on();
}

}  // namespace troupe::actors
