// A way to someone who answers: the rendezvous, a parameter server. The seam that the links of a
// run carry. Torch-free.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "envs/spec/result.hpp"

namespace troupe::learners {

// Used by one thread at a time. kUnavailable: nobody is there; kTimeout: no answer came. Whether
// the request was seen is then unknown.
class RequestLink {
 public:
  virtual ~RequestLink() = default;
  virtual Result<std::vector<std::uint8_t>> ask(std::span<const std::uint8_t> request,
                                                std::chrono::milliseconds timeout) = 0;
};

}  // namespace troupe::learners
