// See console.hpp. One thread.
#include "actors/telemetry/console.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "actors/telemetry/text.hpp"

namespace troupe::actors::telemetry {
namespace {

constexpr std::size_t kPlainColumns = 400;  // plain lines are read by tools: nothing is cut
constexpr const char* kEraseLine = "\r\033[K";
constexpr const char* kBold = "\033[1m";
constexpr const char* kNormal = "\033[0m";

std::string_view environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

ConsoleOptions console_options(std::FILE* stream) {
  const std::string_view terminal = environment_variable("TERM");
  ConsoleOptions options;
  options.is_terminal = ::isatty(::fileno(stream)) == 1 && !terminal.empty() && terminal != "dumb";
  options.colour = options.is_terminal && environment_variable("NO_COLOR").empty();
  return options;
}

std::size_t terminal_columns(std::FILE* stream) {
  winsize size{};
  if (::ioctl(::fileno(stream), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

void ProgressConsole::draw(const std::string& line) {
  std::fprintf(stream_, "%s%s%s%s", kEraseLine, options_.colour ? kBold : "", line.c_str(),
               options_.colour ? kNormal : "");
  std::fflush(stream_);
  shown_ = line;
}

void ProgressConsole::erase() {
  if (!shown_.empty()) std::fputs(kEraseLine, stream_);
}

void ProgressConsole::update(const RunStatus& status, std::int64_t actor_steps,
                             std::int64_t learner_updates, double now) {
  if (finished_) return;
  if (options_.is_terminal) {
    // One column stays free: a full line would wrap on some terminals.
    const std::size_t columns = terminal_columns(stream_) - 1;
    draw(progress_line(status, actor_steps, learner_updates, columns));
  } else if (!has_printed_ || now >= next_plain_) {
    has_printed_ = true;
    next_plain_ = now + options_.plain_every;
    print(progress_line(status, actor_steps, learner_updates, kPlainColumns));
  }
}

void ProgressConsole::print(const std::string& line) {
  erase();
  std::fprintf(stream_, "%s\n", line.c_str());
  if (!shown_.empty()) draw(shown_);
  std::fflush(stream_);
}

void ProgressConsole::finish(const RunStatus& status, std::int64_t actor_steps,
                             std::int64_t learner_updates) {
  if (finished_) return;
  finished_ = true;
  erase();
  shown_.clear();
  std::string line = progress_line(status, actor_steps, learner_updates, kPlainColumns);
  if (!status.reason.empty()) line += "  " + status.reason;
  print(line);
}

}  // namespace troupe::actors::telemetry
