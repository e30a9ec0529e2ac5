// Implements the pipelines.
#include "learners/replicas/inputs.hpp"

#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

// How process 0 describes tensors to those that have to make room for them: count, then type,
// number of dimensions and dimensions of each.
constexpr std::int64_t kDescription = 1024;
constexpr std::int64_t kEnd = -1;  // no more inputs

Result<at::Tensor> describe(const Tensors& tensors) {
  at::Tensor description = at::zeros({kDescription}, at::kLong);
  auto* at = description.mutable_data_ptr<std::int64_t>();
  const auto* end = at + kDescription;
  *at++ = static_cast<std::int64_t>(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    if (end - at < tensor.dim() + 2)
      return fail(ErrorCode::kInvalidArgument, "A pipeline gives too many tensors to describe.");
    *at++ = static_cast<std::int64_t>(tensor.scalar_type());
    *at++ = tensor.dim();
    for (const std::int64_t extent : tensor.sizes()) *at++ = extent;
  }
  return description;
}

Tensors described(const at::Tensor& description) {
  const auto* at = description.const_data_ptr<std::int64_t>();
  Tensors tensors(static_cast<std::size_t>(*at++));
  for (at::Tensor& tensor : tensors) {
    const auto type = static_cast<at::ScalarType>(*at++);
    const std::int64_t dimensions = *at++;
    tensor = at::empty(std::vector<std::int64_t>(at, at + dimensions), type);
    at += dimensions;
  }
  return tensors;
}

}  // namespace

Inputs::Inputs(const ReplicaLayout& layout, const std::string& mode, const InputFunction& function,
               std::unique_ptr<Collective> between)
    : layout_(layout), between_(std::move(between)), by_replica_(mode == "replica") {
  const auto add = [&](int pipeline, int pipelines, std::int64_t rows) {
    contexts_.push_back({pipeline, pipelines, rows});
    pipelines_.push_back(function(contexts_.back()));
  };
  if (by_replica_) {
    for (int i = 0; i < layout.local; ++i)
      add(layout.first_replica() + i, layout.replicas, layout.replica_rows);
  } else if (mode == "process") {
    add(layout.process, layout.processes, layout.replica_rows * layout.local);
  } else {
    if (layout.process == 0) add(0, 1, layout.replica_rows * layout.replicas);
    first_row_ = layout.replica_rows * layout.first_replica();
  }
}

Result<Tensors> Inputs::checked(const Pipeline& pipeline, const InputContext& context) const {
  Result<Tensors> tensors = pipeline();
  if (!tensors) return tensors;
  for (std::size_t i = 0; i < tensors->size(); ++i) {
    at::Tensor& tensor = (*tensors)[i];
    const std::int64_t rows = tensor.dim() == 0 ? 0 : tensor.size(0);
    if (rows != context.rows)
      return fail(ErrorCode::kInvalidArgument,
                  "Input pipeline " + std::to_string(context.pipeline) + " gave " +
                      std::to_string(rows) + " rows in tensor " + std::to_string(i) + ", not " +
                      std::to_string(context.rows) + ".");
    tensor = tensor.contiguous();
  }
  return tensors;
}

Result<void> Inputs::fetch() {
  if (by_replica_) return {};
  Result<Tensors> own;
  if (!pipelines_.empty()) own = checked(pipelines_[0], contexts_[0]);
  if (between_) return share(own);
  if (!own) return tl::unexpected(own.error());
  rows_ = *std::move(own);
  return {};
}

Result<void> Inputs::share(const Result<Tensors>& own) {
  constexpr const char* kCall = "inputs of one pipeline";
  at::Tensor description = at::full({kDescription}, kEnd, at::kLong);
  if (layout_.process == 0 && own) {
    const Result<at::Tensor> made = describe(*own);
    if (!made) return tl::unexpected(made.error());
    description = *made;
  }
  if (layout_.process == 0 && !own && own.error().code != ErrorCode::kNotFound)
    return tl::unexpected(own.error());
  if (Result<void> told = between_->broadcast(std::array{description}, 0, kCall); !told)
    return told;
  if (*description.const_data_ptr<std::int64_t>() == kEnd)
    return fail(ErrorCode::kNotFound, own ? "Input pipeline 0 has no more." : own.error().message);
  rows_ = layout_.process == 0 ? *own : described(description);
  return between_->broadcast(rows_, 0, kCall);
}

Result<Tensors> Inputs::take(int index) {
  if (by_replica_) {
    const auto i = static_cast<std::size_t>(index);
    return checked(pipelines_[i], contexts_[i]);
  }
  Tensors part;
  for (const at::Tensor& tensor : rows_)
    part.push_back(
        tensor.narrow(0, first_row_ + index * layout_.replica_rows, layout_.replica_rows));
  return part;
}

void Inputs::leave(const std::string& reason) {
  if (between_) between_->leave(reason);
}

}  // namespace troupe::learners
