// Keeps MuJoCo's error handling inside Troupe: its errors become values, its warnings become text
// that nobody prints (by default both go to the console and to MUJOCO_LOG.TXT in the working
// directory). Thread rule: the handler is installed once per process; guards and texts are per
// thread.
//
// mju_error must not return to its caller, and its callers are C, through which a C++ exception may
// not pass. So a guarded call is a setjmp, and the handler jumps back to it, over C frames only.
// Therefore a guarded function calls MuJoCo with plain values and owns nothing that needs a
// destructor.
#pragma once

#include <string>
#include <type_traits>

namespace troupe::envs::mujoco {

// Routes MuJoCo's messages of the whole process to this file. Idempotent; Model::load calls it.
void install_log_handler();

// Runs `function(context)`; false when MuJoCo raised an error in it, whose text is then
// last_error(). What was being computed is unusable until mj_resetData. Not reentrant. About 10 ns.
bool run_guarded(void (*function)(void*), void* context);

// The same for a lambda that captures by reference and holds no object with a destructor.
template <class Function>
bool guarded(Function&& function) {
  return run_guarded(
      [](void* context) { (*static_cast<std::remove_reference_t<Function>*>(context))(); },
      &function);
}

// Texts of this thread's last error and last warning; empty when there was none.
std::string last_error();
std::string last_warning();

}  // namespace troupe::envs::mujoco
