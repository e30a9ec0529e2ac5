// A network of the user's as TorchScript, for judging generated pictures by its features:
// torch-free here, found in the learning library by load_script_loader (learners/loader.hpp).
// Belongs to one thread, and computes on it and `threads` - 1 others.
#pragma once

#include <memory>
#include <string>

#include "envs/spec/result.hpp"
#include "learners/supervised/options.hpp"
#include "learners/supervised/predictor.hpp"

namespace troupe::learners {

// Loads `file` and tries it on two pictures of the spec. It takes f32 [B, channels, side, side]
// from 0 to 255 and gives features [B, F], or a tuple of those and logits [B, K]; Outputs::logits
// is empty without the latter. Whatever scale and size it wants inside are its own business.
// kNotFound without the file, kCorrupt for one that is no TorchScript, kInvalidArgument when it
// throws or gives something else: the message says what.
Result<std::unique_ptr<PictureNetwork>> load_script_network(const std::string& file,
                                                            const PictureSpec& pictures,
                                                            int threads);

// Signature of the C symbol "troupe_load_script_network" exported by libtroupe_learners.so.
using LoadScriptNetwork = Result<std::unique_ptr<PictureNetwork>>(const std::string&,
                                                                  const PictureSpec&, int);

}  // namespace troupe::learners
