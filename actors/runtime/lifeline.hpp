// The child's side of a lifeline, and the watchdog that bounds every shutdown. Both run a thread of
// their own.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

namespace troupe::actors {

// Names the descriptor of the lifeline in a child's environment.
inline constexpr const char* kLifelineVariable = "TROUPE_LIFELINE";

// Ends the process with _exit(exit_code) after `limit`, whatever its other threads do, after one
// line on stderr that says `why`. Cannot be called off; cheap enough to arm early in every stop.
void exit_after(std::chrono::milliseconds limit, int exit_code, std::string why);

class Lifeline {
 public:
  // Call first thing in main, before other threads exist. Null when no parent holds a lifeline
  // (started by hand). Once the parent is gone, `on_parent_gone` runs on the lifeline's thread, and
  // `deadline` later the process ends with exit code 1 if it still lives.
  static std::unique_ptr<Lifeline> attach(std::function<void()> on_parent_gone,
                                          std::chrono::milliseconds deadline);
  // The parent's death goes unnoticed from here on.
  ~Lifeline();
  Lifeline(const Lifeline&) = delete;
  Lifeline& operator=(const Lifeline&) = delete;

 private:
  Lifeline(int descriptor, int wake, std::function<void()> on_parent_gone,
           std::chrono::milliseconds deadline);

  int descriptor_;
  int wake_;
  std::thread thread_;
};

}  // namespace troupe::actors
