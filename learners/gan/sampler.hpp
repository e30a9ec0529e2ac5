// Pictures from a trained generator, for programs that judge and show them: torch-free here, found
// in the learning library by load_sampler (learners/loader.hpp). Belongs to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "envs/spec/result.hpp"
#include "learners/gan/options.hpp"
#include "models/inference/parameter_set.hpp"

namespace troupe::learners {

class Sampler {
 public:
  virtual ~Sampler() = default;
  // kInvalidArgument naming the array that is missing or has another shape; nothing is changed
  // then.
  virtual Result<void> set_parameters(const models::ParameterSet& set) = 0;
  // Pictures u8 [labels.size()][side][side][channels] of noise [labels.size()][options.noise];
  // labels are not looked at by a generator without classes. kInvalidArgument for other sizes or a
  // label that is no class.
  virtual Result<std::vector<std::uint8_t>> sample(std::span<const float> noise,
                                                   std::span<const std::int64_t> labels) = 0;
};

// A generator of the options' shape, not trained. kInvalidArgument naming the option.
Result<std::unique_ptr<Sampler>> make_sampler(const GanOptions& options,
                                              const PictureSpec& pictures, int threads);

// Signature of the C symbol "troupe_make_sampler" exported by libtroupe_learners.so.
using MakeSampler = Result<std::unique_ptr<Sampler>>(const GanOptions&, const PictureSpec&, int);

}  // namespace troupe::learners
