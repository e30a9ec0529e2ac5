// Speed of a growing number over the last seconds. A pure class; time is a parameter, in seconds
// from any origin.
#pragma once

#include <deque>

namespace troupe::actors::telemetry {

class RateWindow {
 public:
  // `total` as of `now`. A total below the last one begins anew (its owner restarted). Amortised
  // O(1); samples closer than 0.25 s are merged and those older than 60 s forgotten.
  void add(double now, double total);
  // Increase per second over at most the last `horizon` seconds; NaN before two samples. Falls
  // towards 0 when nothing was added for 3 s.
  double rate(double now, double horizon = 10) const;

 private:
  struct Sample {
    double time, total;
  };
  std::deque<Sample> samples_;
};

}  // namespace troupe::actors::telemetry
