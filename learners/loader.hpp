// Loads libtroupe_learners.so at run time, so that programs start without LibTorch. Any thread; see
// envs/spec/shared_library.hpp.
#pragma once

#include "envs/spec/result.hpp"
#include "learners/benchmark.hpp"
#include "learners/gan/sampler.hpp"
#include "learners/gan/script_network.hpp"
#include "learners/learner.hpp"
#include "learners/parameter_servers/shard.hpp"
#include "learners/supervised/predictor.hpp"

namespace troupe::learners {

// The library's factory. kNotFound names the places looked at ($TROUPE_LEARNERS_LIBRARY alone if it
// is set), kUnavailable the loader's own words. The first call costs about half a second.
Result<MakeLearner*> load_learning_library();
// Its parameter servers, its predictor for trained classifiers, its sampler for trained generators,
// its loader of networks in TorchScript, and its benchmark; the same errors.
Result<MakeParameterShard*> load_parameter_shards();
Result<MakePredictor*> load_predictor();
Result<MakeSampler*> load_sampler();
Result<LoadScriptNetwork*> load_script_loader();
Result<RunLearnerBenchmark*> load_learner_benchmark();

}  // namespace troupe::learners
