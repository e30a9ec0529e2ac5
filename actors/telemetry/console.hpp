// The progress line of `troupe run`: on a terminal one line that updates in place, elsewhere a
// plain line now and then. Owns nothing but the line; the stream belongs to the caller. One thread.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "actors/telemetry/protocol.hpp"

namespace troupe::actors::telemetry {

struct ConsoleOptions {
  bool is_terminal = false;
  bool colour = false;      // only used on a terminal
  double plain_every = 10;  // s between plain lines where there is no terminal
};
// What the stream and the environment call for: a terminal that can move its cursor (TERM is not
// "dumb"), and no colour when NO_COLOR is set and not empty (https://no-color.org).
ConsoleOptions console_options(std::FILE* stream);
// Columns of the stream's terminal; 80 when it has none.
std::size_t terminal_columns(std::FILE* stream);

class ProgressConsole {
 public:
  ProgressConsole(std::FILE* stream, ConsoleOptions options) : stream_(stream), options_(options) {}

  // Call it about once a second; `now` in seconds of a steady clock.
  void update(const RunStatus& status, std::int64_t actor_steps, std::int64_t learner_updates,
              double now);
  // A whole line (a message of the log, a warning) without disturbing the progress line.
  void print(const std::string& line);
  // Leaves the last state as a line of its own. Safe to call twice.
  void finish(const RunStatus& status, std::int64_t actor_steps, std::int64_t learner_updates);

 private:
  void draw(const std::string& line);
  void erase();
  std::FILE* stream_;
  ConsoleOptions options_;
  std::string shown_;  // the line on the terminal now
  double next_plain_ = 0;
  bool has_printed_ = false, finished_ = false;
};

}  // namespace troupe::actors::telemetry
