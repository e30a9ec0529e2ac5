#include "actors/runtime/log.hpp"

#include <spdlog/logger.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>

namespace troupe::actors {
namespace {

constexpr const char* kPattern = "%Y-%m-%d %H:%M:%S.%e %^%-7l%$ %v";

std::atomic<std::uint64_t> lost_lines{0};

std::shared_ptr<spdlog::sinks::sink> console_sink() {
  const char* no_color = std::getenv("NO_COLOR");
  const bool plain = no_color && *no_color != '\0';
  return std::make_shared<spdlog::sinks::stderr_color_sink_mt>(
      plain ? spdlog::color_mode::never : spdlog::color_mode::automatic);
}

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      break;
  }
  return spdlog::level::err;
}

std::shared_ptr<spdlog::logger> make_logger(std::vector<spdlog::sink_ptr> sinks, LogLevel level) {
  auto logger = std::make_shared<spdlog::logger>("troupe", sinks.begin(), sinks.end());
  logger->set_pattern(kPattern);
  logger->set_level(spdlog_level(level));
  logger->flush_on(spdlog::level::info);
  logger->set_error_handler([](const std::string&) { ++lost_lines; });
  return logger;
}

// Never destroyed, so that threads may log until the process is gone; flushed at exit instead.
struct State {
  std::mutex mutex;
  std::shared_ptr<spdlog::logger> logger = make_logger({console_sink()}, LogLevel::kInfo);
};

State& state() {
  static State* const instance = [] {
    std::atexit(flush_log);
    return new State;
  }();
  return *instance;
}

std::shared_ptr<spdlog::logger> current_logger() {
  const std::lock_guard lock(state().mutex);
  return state().logger;
}

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

void append_escaped(std::string& line, std::string_view text) {
  constexpr const char* kDigits = "0123456789abcdef";
  for (const char c : text) {
    if (!is_control(c)) {
      line += c;
    } else if (c == '\n') {
      line += "\\n";
    } else {
      const auto byte = static_cast<unsigned char>(c);
      line += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
}

void write_line(LogLevel level, std::string_view component, std::string_view message) {
  const auto logger = current_logger();
  if (!logger->should_log(spdlog_level(level))) return;
  std::string line = "[";
  append_escaped(line, component);
  line += "] ";
  append_escaped(line, message);
  logger->log(spdlog_level(level), line);
}

}  // namespace

Result<void> start_logging(const LogOptions& options) {
  std::vector<spdlog::sink_ptr> sinks;
  if (options.console) sinks.push_back(console_sink());
  try {
    if (!options.file.empty())
      sinks.push_back(std::make_shared<spdlog::sinks::basic_file_sink_mt>(options.file));
  } catch (const spdlog::spdlog_ex& error) {
    return fail(ErrorCode::kIo, "cannot open log file " + options.file + ": " + error.what());
  }
  const LogLevel file_level = options.file_level.value_or(options.level);
  if (options.console) sinks.front()->set_level(spdlog_level(options.level));
  if (!options.file.empty()) sinks.back()->set_level(spdlog_level(file_level));
  auto logger = make_logger(std::move(sinks), std::min(options.level, file_level));
  const std::lock_guard lock(state().mutex);
  state().logger->flush();
  state().logger = std::move(logger);
  return {};
}

void flush_log() { current_logger()->flush(); }

void log_debug(std::string_view component, std::string_view message) {
  write_line(LogLevel::kDebug, component, message);
}
void log_info(std::string_view component, std::string_view message) {
  write_line(LogLevel::kInfo, component, message);
}
void log_warning(std::string_view component, std::string_view message) {
  write_line(LogLevel::kWarning, component, message);
}
void log_error(std::string_view component, std::string_view message) {
  write_line(LogLevel::kError, component, message);
}

std::uint64_t lost_log_lines() { return lost_lines; }

Result<LogLevel> parse_log_level(const std::string& name) {
  if (name == "debug") return LogLevel::kDebug;
  if (name == "info") return LogLevel::kInfo;
  if (name == "warning") return LogLevel::kWarning;
  if (name == "error") return LogLevel::kError;
  return fail(ErrorCode::kInvalidArgument,
              "log level '" + name + "' must be debug, info, warning or error");
}

}  // namespace troupe::actors
