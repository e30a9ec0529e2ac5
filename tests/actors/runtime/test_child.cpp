// What the process tests start: `runtime_test_child MODE [ARGUMENT]`. One behaviour per mode.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>

#include "actors/runtime/lifeline.hpp"
#include "actors/runtime/process.hpp"
#include "actors/runtime/signals.hpp"

namespace {

using namespace std::chrono_literals;
using namespace troupe::actors;

int say(const std::string& text) {
  std::puts(text.c_str());
  std::fflush(stdout);
  return 0;
}

[[noreturn]] void wait_for_ever() {
  for (;;) ::pause();
}

// Held as long as this process lives, zombies excluded.
bool take_lock(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  return file >= 0 && ::flock(file, LOCK_EX | LOCK_NB) == 0;
}

int exit_with(const std::string& code) { return std::atoi(code.c_str()); }

int die_by(const std::string& signal) {
  ::raise(std::atoi(signal.c_str()));
  wait_for_ever();
}

int print_lines(const std::string& count) {
  for (int i = 1; i <= std::atoi(count.c_str()); ++i)
    std::fprintf(i % 2 == 0 ? stderr : stdout, "line %d\n", i), std::fflush(stdout);
  return 0;
}

int print_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return say(value ? value : "(unset)");
}

int print_group(const std::string&) {
  return say(::getpgrp() == ::getpid() ? "own group" : "shared group");
}

// Descriptors that were inherited beside the standard three.
int print_descriptors(const std::string&) {
  std::string list = "descriptors";
  for (int i = 3; i < 1024; ++i)
    if (::fcntl(i, F_GETFD) >= 0) list.append(" ").append(std::to_string(i));
  return say(list);
}

int ignore_sigterm(const std::string&) {
  ::signal(SIGTERM, SIG_IGN);
  say("ready");
  wait_for_ever();
}

int sleep_for_ever(const std::string&) {
  say("ready");
  wait_for_ever();
}

// Ends by itself when its parent goes.
int follow_parent(const std::string& lock) {
  const auto lifeline = Lifeline::attach([] { ::_exit(0); }, 5s);
  if (!lifeline || !take_lock(lock)) return 9;
  say("ready");
  wait_for_ever();
}

// Its stop hangs, so only the deadline ends it.
int hang_without_parent(const std::string& lock) {
  const auto lifeline = Lifeline::attach([] { wait_for_ever(); }, 100ms);
  if (!lifeline || !take_lock(lock)) return 9;
  say("ready");
  wait_for_ever();
}

// A middle generation: starts two children that hold locks, then follows its own parent.
int start_grandchildren(const std::string& locks) {
  const auto lifeline = Lifeline::attach([] { ::_exit(0); }, 5s);
  std::vector<ChildProcess> children;
  const auto start = [&](const std::string& mode, const std::string& lock) {
    auto child =
        ChildProcess::spawn({.name = mode, .arguments = {mode, lock}, .log_file = lock + ".log"});
    if (child) children.push_back(std::move(*child));
  };
  start("follow_parent", locks + "1");
  start("hang_without_parent", locks + "2");
  say(children.size() == 2 ? "ready" : "failed");
  wait_for_ever();
}

int report_signals(const std::string&) {
  block_stop_signals();
  auto listener = SignalListener::start([](int signal, int count) {
    say(signal_name(signal) + " " + std::to_string(count));
    if (count == 3) ::_exit(0);
  });
  say("ready");
  std::thread another([] { wait_for_ever(); });
  wait_for_ever();
}

int stop_listening(const std::string&) {
  block_stop_signals();
  {
    auto listener = SignalListener::start([](int, int) {});
  }
  return 4;
}

int hang_at_exit(const std::string&) {
  exit_after(50ms, 7, "the stop took too long");
  wait_for_ever();
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, int (*)(const std::string&)> modes = {
      {"exit_with", exit_with},
      {"die_by", die_by},
      {"print_lines", print_lines},
      {"print_variable", print_variable},
      {"print_group", print_group},
      {"print_descriptors", print_descriptors},
      {"ignore_sigterm", ignore_sigterm},
      {"sleep_for_ever", sleep_for_ever},
      {"follow_parent", follow_parent},
      {"hang_without_parent", hang_without_parent},
      {"start_grandchildren", start_grandchildren},
      {"report_signals", report_signals},
      {"stop_listening", stop_listening},
      {"hang_at_exit", hang_at_exit},
  };
  const auto mode = modes.find(argc > 1 ? argv[1] : "");
  return mode == modes.end() ? 99 : mode->second(argc > 2 ? argv[2] : "");
}
