// SIGINT, SIGTERM and SIGHUP as calls on a thread of ours instead of interruptions of any thread.
#pragma once

#include <functional>
#include <thread>

#include "envs/spec/result.hpp"

namespace troupe::actors {

// First thing in main, while there is one thread: all later threads inherit the mask. SIGPIPE is
// ignored.
void block_stop_signals();

class SignalListener {
 public:
  // `on_signal(signal, count)` runs on the listener's thread for each signal; count is 1 for the
  // first of any kind, so a count of 2 means that somebody is in a hurry. kIo when the kernel has
  // no descriptors left; block_stop_signals() must have been called.
  static Result<SignalListener> start(std::function<void(int signal, int count)> on_signal);

  SignalListener(SignalListener&& other) noexcept;
  SignalListener& operator=(SignalListener&&) = delete;
  ~SignalListener();

 private:
  SignalListener(int signals, int wake, std::function<void(int, int)> on_signal);

  int signals_;
  int wake_;
  std::thread thread_;
};

}  // namespace troupe::actors
