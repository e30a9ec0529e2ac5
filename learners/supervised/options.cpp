#include "learners/supervised/options.hpp"

#include <array>

namespace troupe::learners {

std::int64_t parameter_count(const ClassifierOptions& options, const PictureSpec& pictures) {
  const bool bottleneck = options.depth >= 50;
  const std::array<std::int64_t, 4> blocks =
      options.depth == 18   ? std::array<std::int64_t, 4>{2, 2, 2, 2}
      : options.depth < 101 ? std::array<std::int64_t, 4>{3, 4, 6, 3}
                            : std::array<std::int64_t, 4>{3, 4, 23, 3};
  // A convolution without bias, and the scale and shift of the norm after it.
  const auto normed = [](std::int64_t kernel, std::int64_t inputs, std::int64_t outputs) {
    return kernel * kernel * inputs * outputs + 2 * outputs;
  };
  std::int64_t inputs = options.width;
  std::int64_t count = normed(options.small_stem ? 3 : 7, pictures.channels, inputs);
  for (std::size_t stage = 0; stage < blocks.size(); ++stage) {
    const std::int64_t width = options.width << stage, outputs = bottleneck ? 4 * width : width;
    for (std::int64_t block = 0; block < blocks[stage]; ++block) {
      count += bottleneck
                   ? normed(1, inputs, width) + normed(3, width, width) + normed(1, width, outputs)
                   : normed(3, inputs, width) + normed(3, width, width);
      if (inputs != outputs || (block == 0 && stage > 0)) count += normed(1, inputs, outputs);
      inputs = outputs;
    }
  }
  return count + (inputs + 1) * pictures.classes;
}

Result<void> check(const ClassifierOptions& options, std::int64_t replicas, std::int64_t channels) {
  const auto refuse = [](const std::string& what) {
    return fail(ErrorCode::kInvalidArgument, what);
  };
  if (options.depth != 18 && options.depth != 34 && options.depth != 50 && options.depth != 101)
    return refuse("depth is " + std::to_string(options.depth) + ", not 18, 34, 50 or 101");
  const std::int64_t parts = replicas * options.accumulate;
  if (options.batch % parts != 0)
    return refuse("batch " + std::to_string(options.batch) + " cannot be divided over " +
                  std::to_string(replicas) + " replicas with accumulate " +
                  std::to_string(options.accumulate));
  const std::int64_t blocks = options.depth == 18 ? 8 : options.depth < 101 ? 16 : 33;
  if (options.stages > blocks + 2)
    return refuse("stages is " + std::to_string(options.stages) + ", but the network has " +
                  std::to_string(blocks + 2) + " parts");
  if (options.stages > 1 && options.batch_norm == "global")
    return refuse("stages takes batch statistics by part of the batch; write batch_norm: replica");
  if (options.stages > 1 && options.precision != "f32")
    return refuse("stages computes in f32; write precision: f32");
  for (const auto& [name, list] :
       {std::pair{"mean", &options.mean}, {"deviation", &options.deviation}})
    if (!list->empty() && static_cast<std::int64_t>(list->size()) != channels)
      return refuse(std::string(name) + " has " + std::to_string(list->size()) +
                    " numbers, but pictures have " + std::to_string(channels) + " channels");
  return check(options.schedule);
}

}  // namespace troupe::learners
