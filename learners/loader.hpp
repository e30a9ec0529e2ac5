// Finds and loads libtroupe_learners.so at run time, so that programs start without LibTorch. Any
// thread; the library stays loaded until the process ends.
#pragma once

#include <filesystem>
#include <vector>

#include "envs/spec/result.hpp"
#include "learners/learner.hpp"

namespace troupe::learners {

// Where the library is looked for, in order: $TROUPE_LEARNERS_LIBRARY alone if it is set, else
// beside the program, and in lib/ and learners/ of the program's folder and of the three folders
// above it.
std::vector<std::filesystem::path> learning_library_candidates();

// The factory of the first candidate that exists. kNotFound names the places looked at,
// kUnavailable the loader's own words. The first call costs about half a second.
Result<MakeLearner*> load_learning_library();

}  // namespace troupe::learners
