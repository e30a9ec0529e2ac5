// What `troupe watch` knows about a run, and how it looks as lines of text. Pure: messages in,
// lines out; the terminal is elsewhere (watch_screen.hpp). One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/telemetry/protocol.hpp"
#include "actors/telemetry/text.hpp"

namespace troupe::actors::telemetry {

// The state of one watched run, of bounded size.
class WatchModel {
 public:
  void apply(const Snapshot& snapshot);  // replaces what was known
  void apply(const Message& message);

  struct PastEvent {
    double time = 0;  // Unix seconds
    std::string node;
    Event event;
  };
  std::string run;
  RunStatus status;
  bool has_status = false;
  std::int64_t actor_steps = 0, learner_updates = 0;
  std::map<std::string, Metrics> metrics;                // the last of each node
  std::map<std::int64_t, double> evaluations;            // mean return by actor steps
  std::deque<std::pair<std::int64_t, double>> episodes;  // actor steps, return
  std::deque<PastEvent> events;
  // Kept by whoever reads the messages.
  std::uint64_t lost = 0, malformed = 0;
  double silent_for = 0;  // s since the last message
};

enum class LineStyle { kPlain, kTitle, kDim, kWarning, kError };
struct StyledLine {
  std::string text;
  LineStyle style = LineStyle::kPlain;
};

// At most `rows` lines of at most `columns`; parts are left out on a small terminal, header first
// kept.
std::vector<StyledLine> render(const WatchModel& model, std::size_t columns, std::size_t rows,
                               bool unicode);

}  // namespace troupe::actors::telemetry
