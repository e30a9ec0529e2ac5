// Names the library and what it exports.
#include "learners/loader.hpp"

#include "envs/spec/shared_library.hpp"

namespace troupe::learners {
namespace {

const SharedLibrary kLibrary{"learning library", "libtroupe_learners.so",
                             "TROUPE_LEARNERS_LIBRARY"};

}  // namespace

Result<MakeLearner*> load_learning_library() {
  return load_function<MakeLearner>(kLibrary, "troupe_make_learner");
}

Result<MakeParameterShard*> load_parameter_shards() {
  return load_function<MakeParameterShard>(kLibrary, "troupe_make_parameter_shard");
}

Result<MakePredictor*> load_predictor() {
  return load_function<MakePredictor>(kLibrary, "troupe_make_predictor");
}

Result<MakeSampler*> load_sampler() {
  return load_function<MakeSampler>(kLibrary, "troupe_make_sampler");
}

Result<LoadScriptNetwork*> load_script_loader() {
  return load_function<LoadScriptNetwork>(kLibrary, "troupe_load_script_network");
}

Result<RunLearnerBenchmark*> load_learner_benchmark() {
  return load_function<RunLearnerBenchmark>(kLibrary, "troupe_learner_benchmark");
}

}  // namespace troupe::learners
