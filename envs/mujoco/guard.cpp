// The process-wide log handler and the per-thread jump target.
#include "envs/mujoco/guard.hpp"

#include <mujoco/mujoco.h>

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <mutex>

namespace troupe::envs::mujoco {
namespace {

struct Texts {
  char error[1024] = "";
  char warning[1024] = "";
};
thread_local Texts texts;
thread_local std::jmp_buf* target = nullptr;

// Fixed buffers: the handler may run where nothing can be destroyed.
void on_message(const mjLogMessage* message) {
  if (message->level == mjLOG_WARNING)
    std::snprintf(texts.warning, sizeof texts.warning, "%s", message->subject);
  if (message->level != mjLOG_ERROR) return;
  std::snprintf(texts.error, sizeof texts.error, "%s", message->subject);
  if (target != nullptr) std::longjmp(*target, 1);
  std::fprintf(stderr, "MuJoCo raised an error outside any guard: %s\n", texts.error);
  std::abort();
}

}  // namespace

void install_log_handler() {
  static std::once_flag once;
  std::call_once(once, [] { mju_setLogHandler(on_message); });
}

bool run_guarded(void (*function)(void*), void* context) {
  std::jmp_buf here;
  target = &here;
  if (setjmp(here) != 0) {
    target = nullptr;
    return false;
  }
  function(context);
  target = nullptr;
  return true;
}

std::string last_error() { return texts.error; }
std::string last_warning() { return texts.warning; }

}  // namespace troupe::envs::mujoco
