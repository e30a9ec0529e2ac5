// What a job on pictures has learnt, from its run's directory or one of its checkpoints. Any
// thread; values of one owner.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "actors/config/run_options.hpp"
#include "learners/supervised/options.hpp"
#include "models/inference/parameter_set.hpp"

namespace troupe::actors {

struct TrainedModel {
  std::filesystem::path checkpoint;
  RunOptions options;
  learners::PictureSpec pictures;
  std::vector<std::string> classes;
  models::ParameterSetPtr parameters;  // averaged ones, where the run averages; of the generator
};

// `job`: "resnet" or "sngan". A run's directory stands for its newest checkpoint, whose files are
// checked against its manifest. kNotFound or kCorrupt naming what is missing or damaged,
// kInvalidArgument for a run of another job.
Result<TrainedModel> load_trained(const std::filesystem::path& path, const std::string& job);

}  // namespace troupe::actors
