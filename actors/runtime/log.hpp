// Logging for everybody: three levels, a component and a sentence. No formatting library is seen
// here, so any folder's compile options go with it. Thread-safe; before start_logging() lines go to
// stderr plainly.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "envs/spec/result.hpp"

namespace troupe::actors {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

struct LogOptions {
  LogLevel level = LogLevel::kInfo;
  bool console = true;  // stderr; coloured on a terminal unless NO_COLOR is set
  std::string file;     // appended to; empty: none
  std::optional<LogLevel> file_level = std::nullopt;  // none: `level` too
};

// Replaces the current logger. kIo when the file cannot be opened; the old logger then stays.
Result<void> start_logging(const LogOptions& options);
// Writes out what is buffered; also happens after every line but debugging ones, and at a normal
// exit.
void flush_log();

// `component` is the actor's or node's name. Control characters in either text are escaped, so that
// bytes from a peer cannot forge lines.
void log_debug(std::string_view component, std::string_view message);
void log_info(std::string_view component, std::string_view message);
void log_warning(std::string_view component, std::string_view message);
void log_error(std::string_view component, std::string_view message);

// Lines that could not be written (full disk); the process goes on.
std::uint64_t lost_log_lines();

// "debug", "info", "warning", "error".
Result<LogLevel> parse_log_level(const std::string& name);

}  // namespace troupe::actors
