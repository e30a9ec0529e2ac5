// From a published set of parameters to the arrays of an image model.
#pragma once

#include <algorithm>
#include <string>

#include "envs/spec/result.hpp"
#include "models/image/arrays.hpp"
#include "models/inference/parameter_set.hpp"

namespace troupe::learners {

// kInvalidArgument naming the array that is missing or has another shape; nothing is changed then.
inline Result<void> set_arrays(const models::ParameterSet& set, const models::ArrayList& list,
                               models::ImageArrays& arrays) {
  const auto find = [&](const std::string& name, const std::vector<std::int64_t>& shape) {
    const auto found = set.arrays.find(name);
    return found != set.arrays.end() && found->second.shape == shape ? &found->second : nullptr;
  };
  const auto& segments = list.layout().segments;
  const auto& buffers = list.buffers();
  const auto missing = [](const std::string& name) {
    return fail(ErrorCode::kInvalidArgument,
                "the parameters have no array " + name + " of the network's shape");
  };
  for (const auto& segment : segments)
    if (!find(segment.name, segment.shape)) return missing(segment.name);
  for (const auto& buffer : buffers)
    if (!find(buffer.name, buffer.shape)) return missing(buffer.name);
  const auto copy = [](const models::ParameterArray& from, const at::Tensor& to) {
    std::copy(from.values.begin(), from.values.end(), to.mutable_data_ptr<float>());
  };
  for (std::size_t i = 0; i < segments.size(); ++i)
    copy(*find(segments[i].name, segments[i].shape), arrays.parameters().constants()[i]);
  for (std::size_t i = 0; i < buffers.size(); ++i)
    copy(*find(buffers[i].name, buffers[i].shape), arrays.buffers()[i]);
  return {};
}

}  // namespace troupe::learners
