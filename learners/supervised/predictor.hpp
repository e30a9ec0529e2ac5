// What a trained classifier makes of pictures, for programs that evaluate and answer: torch-free
// here, found in the learning library by load_predictor (learners/loader.hpp). Belongs to one
// thread, and computes on it and `threads` - 1 others.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "envs/spec/result.hpp"
#include "learners/supervised/options.hpp"
#include "models/inference/parameter_set.hpp"

namespace troupe::learners {

// What a network says of pictures.
class PictureNetwork {
 public:
  virtual ~PictureNetwork() = default;
  // Of pictures u8 [count][side][side][channels]; kInvalidArgument for another number of bytes.
  struct Outputs {
    std::vector<float> logits, features;  // [count][classes], [count][features]
    std::int64_t count = 0;
  };
  virtual Result<Outputs> outputs(std::span<const std::uint8_t> pixels) = 0;
};

class Predictor : public PictureNetwork {
 public:
  // kInvalidArgument naming the array that is missing or has another shape; nothing is changed
  // then.
  virtual Result<void> set_parameters(const models::ParameterSet& set) = 0;
};

// A ResNet of the options' shape, not trained. kInvalidArgument naming the option.
Result<std::unique_ptr<Predictor>> make_predictor(const ClassifierOptions& options,
                                                  const PictureSpec& pictures, int threads);

// Signature of the C symbol "troupe_make_predictor" exported by libtroupe_learners.so.
using MakePredictor = Result<std::unique_ptr<Predictor>>(const ClassifierOptions&,
                                                         const PictureSpec&, int);

}  // namespace troupe::learners
