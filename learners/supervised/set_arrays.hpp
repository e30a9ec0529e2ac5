// Between the arrays of an image model and a published set of parameters, or the files of a
// checkpoint.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "envs/spec/result.hpp"
#include "learners/checkpoint_files.hpp"
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

// The inverse: `values` [layout().size], which may be averaged ones, and the arrays' buffers.
inline void put_arrays(models::ParameterSet& set, const models::ArrayList& list,
                       std::span<const float> values, const models::ImageArrays& arrays) {
  const auto put = [&](const std::string& name, const std::vector<std::int64_t>& shape,
                       std::span<const float> from) {
    set.arrays[name] = {shape, {from.begin(), from.end()}};
  };
  for (const models::Segment& segment : list.layout().segments)
    put(segment.name, segment.shape,
        values.subspan(static_cast<std::size_t>(segment.offset),
                       static_cast<std::size_t>(segment.elements)));
  for (std::size_t i = 0; i < list.buffers().size(); ++i) {
    const at::Tensor held = arrays.buffers()[i].contiguous();
    put(list.buffers()[i].name, list.buffers()[i].shape,
        {held.const_data_ptr<float>(), static_cast<std::size_t>(held.numel())});
  }
}

// Buffers of every replica are kept, because batch statistics are each replica's own: those of
// replica 0 among the parameters, the others' in the optimizer's file under this name.
inline std::string of_replica(std::size_t replica) {
  return replica == 0 ? "" : "replica_" + std::to_string(replica) + ".";
}

// `to` refers to tensors that are put into `held`.
inline void add_buffers(NamedArrays& to, const std::string& prefix, const models::ArrayList& list,
                        const models::ImageArrays& arrays, std::vector<at::Tensor>& held) {
  for (std::size_t i = 0; i < list.buffers().size(); ++i) {
    held.push_back(arrays.buffers()[i].contiguous());
    const at::Tensor& tensor = held.back();
    const std::span<const float> values(tensor.const_data_ptr<float>(),
                                        static_cast<std::size_t>(tensor.numel()));
    to[prefix + list.buffers()[i].name] = {DType::kF32, list.buffers()[i].shape, raw_bytes(values)};
  }
}

// The buffers of `replica` of a checkpoint of so many; more than it has begin with the first one's.
// Errors as of SafeTensors::copy.
inline Result<std::vector<at::Tensor>> take_buffers(const LearnerFiles& files, std::size_t replica,
                                                    std::size_t saved_replicas,
                                                    const std::string& prefix,
                                                    const models::ArrayList& list) {
  const bool own = replica > 0 && replica < saved_replicas;
  const SafeTensors& from = own ? files.optimizer : files.parameters;
  std::vector<at::Tensor> buffers;
  for (const auto& buffer : list.buffers()) {
    const at::Tensor& tensor = buffers.emplace_back(at::empty(buffer.shape));
    const std::span<float> to(tensor.mutable_data_ptr<float>(),
                              static_cast<std::size_t>(tensor.numel()));
    const std::string name = (own ? of_replica(replica) : "") + prefix + buffer.name;
    if (auto copied = from.copy(name, buffer.shape, to); !copied)
      return tl::unexpected(copied.error());
  }
  return buffers;
}

}  // namespace troupe::learners
