// Environments with known answers or a known fault, for checking whole runs: each exposes one kind
// of silent mistake (bootstrapping, seeding, action scaling) or one kind of accident (NaN,
// exception, crash, hang, huge or slow observations). No thread rule beyond Env's.
//
// Step numbers K count the steps since the environment was made, over episodes, from 1; the fault
// happens once, so that a run can be seen to recover.
#pragma once

#include <memory>
#include <string_view>

#include "envs/env.hpp"

namespace troupe::envs::probes {

using Made = Result<std::unique_ptr<Env>>;

// Reward 1, observation 1, one action in [-1, 1] without effect. Never terminates: the value under
// discount g is 1 / (1 - g) everywhere. The argument is the time limit, 50 when empty.
Made make_const(std::string_view argument);

// Reward 1, observation t/T; terminates at step T (the argument, 50 when empty): the value at t is
// (1 - g^(T-t)) / (1 - g).
Made make_term(std::string_view argument);

// As make_const, but the reward ("K" or "K:reward") or the observation ("K:observation") of step K
// is NaN.
Made make_nan(std::string_view argument);

// As make_const, but step K throws std::runtime_error, calls std::abort after a line on stderr, or
// never returns: "K:throw", "K:abort", "K:hang".
Made make_crash(std::string_view argument);

// Each observation and reward is the next draw, uniform in [0, 1), of the episode's random stream.
Made make_seed();

// Observes the action it received (0, 0 after reset); bounds [-0.4, 0.4] x [0, 10]; the reward is
// the second component.
Made make_box();

// As make_const with an observation of 2^21 f32 elements (8 MiB), each holding the episode step.
Made make_big();

// As make_const, one second of wall time a step.
Made make_slow();

// As make_const with the bounds [-inf, inf], so that the refusal can be seen.
Made make_unbounded();

}  // namespace troupe::envs::probes
