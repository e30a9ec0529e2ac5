#include "learners/supervised/pipeline.hpp"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <string>
#include <utility>

#include "models/torch_precompiled.hpp"

namespace troupe::learners {

struct ResNetPipeline::Stage {
  // Parameters [first, last) of the model's, and its buffers likewise.
  Stage(const models::ResNet& model, std::size_t begin, std::size_t end, at::Device where)
      : device(where),
        first_part(begin),
        last_part(end),
        first(model.begin_of(begin)),
        last(model.begin_of(end)),
        parameters(layout_of(model), true, where),
        slots(model.arrays().layout().segments.size()),
        buffers(model.arrays().buffers().size()) {
    for (std::size_t i = first.parameter; i < last.parameter; ++i)
      slots[i] = parameters.parameters()[i - first.parameter];
  }

  models::FlatLayout layout_of(const models::ResNet& model) const {
    models::FlatLayout layout;
    for (std::size_t i = first.parameter; i < last.parameter; ++i) {
      const models::Segment& segment = model.arrays().layout().segments[i];
      layout.append(segment.name, segment.shape);
    }
    return layout;
  }

  const at::Device device;
  const std::size_t first_part, last_part;
  const models::ResNet::Position first, last;
  models::FlatParameters parameters;       // its own, on the device
  std::vector<at::Tensor> slots, buffers;  // by the model's indices; those of others undefined
  std::deque<at::Tensor> inputs, slopes;   // what neighbours sent; under the mutex
  struct UnderWay {
    at::Tensor input, output;
  };
  std::deque<UnderWay> under_way;
  std::size_t done = 0, begun = 0;  // micro-batches
};

Result<std::unique_ptr<ResNetPipeline>> ResNetPipeline::create(
    const models::ResNet& model, const std::vector<at::Device>& devices, int threads) {
  if (devices.empty() || devices.size() > model.parts())
    return fail(ErrorCode::kInvalidArgument, std::to_string(model.parts()) +
                                                 " parts cannot be divided over " +
                                                 std::to_string(devices.size()) + " stages");
  return std::unique_ptr<ResNetPipeline>(new ResNetPipeline(model, devices, threads));
}

ResNetPipeline::ResNetPipeline(const models::ResNet& model, const std::vector<at::Device>& devices,
                               int threads)
    : model_(model),
      threads_(static_cast<int>(devices.size()), [threads](int) { at::set_num_threads(threads); }) {
  const std::size_t parts = model.parts(), count = devices.size();
  for (std::size_t s = 0; s < count; ++s)
    stages_.push_back(
        std::make_unique<Stage>(model, s * parts / count, (s + 1) * parts / count, devices[s]));
}

ResNetPipeline::~ResNetPipeline() = default;

void ResNetPipeline::take(const models::ImageArrays& arrays) {
  const at::NoGradGuard without_gradient;
  for (const auto& stage : stages_) {
    for (std::size_t i = stage->first.parameter; i < stage->last.parameter; ++i)
      stage->parameters.constants()[i - stage->first.parameter].copy_(
          arrays.parameters().constants()[i]);
    stage->parameters.gradient().zero_();
    for (std::size_t i = stage->first.buffer; i < stage->last.buffer; ++i)
      stage->buffers[i] = arrays.buffers()[i].to(stage->device);
    stage->inputs.clear();
    stage->slopes.clear();
    stage->under_way.clear();
    stage->done = stage->begun = 0;
  }
  failure_ = nullptr;
}

void ResNetPipeline::give(models::ImageArrays& arrays) const {
  const at::NoGradGuard without_gradient;
  const at::Device home = arrays.parameters().values().device();
  for (const auto& stage : stages_) {
    for (std::size_t i = stage->first.parameter; i < stage->last.parameter; ++i)
      arrays.parameters().parameters()[i].mutable_grad().copy_(stage->slots[i].grad());
    for (std::size_t i = stage->first.buffer; i < stage->last.buffer; ++i)
      arrays.buffers()[i] = stage->buffers[i].to(home);
  }
}

void ResNetPipeline::run(models::ImageArrays& arrays, const std::vector<at::Tensor>& micro_batches,
                         const Loss& loss) {
  take(arrays);
  for (const at::Tensor& pictures : micro_batches)
    stages_.front()->inputs.push_back(pictures.to(stages_.front()->device));
  threads_.run([&](int index) {
    try {
      work(static_cast<std::size_t>(index), micro_batches.size(), loss);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      moved_.notify_all();
    }
  });
  if (failure_) std::rethrow_exception(failure_);
  give(arrays);
}

void ResNetPipeline::work(std::size_t index, std::size_t micro_batches, const Loss& loss) {
  while (stages_[index]->done < micro_batches)
    if (!step(index, loss)) return;
}

bool ResNetPipeline::step(std::size_t index, const Loss& loss) {
  Stage& stage = *stages_[index];
  const std::size_t most = stages_.size() - index;
  at::Tensor slope, input;
  {
    std::unique_lock lock(mutex_);
    moved_.wait(lock, [&] {
      return failure_ || !stage.slopes.empty() ||
             (!stage.inputs.empty() && stage.under_way.size() < most);
    });
    if (failure_) return false;
    std::deque<at::Tensor>& inbox = stage.slopes.empty() ? stage.inputs : stage.slopes;
    (stage.slopes.empty() ? input : slope) = std::move(inbox.front());
    inbox.pop_front();
  }
  if (slope.defined())
    backward(index, slope);
  else
    forward(index, input, loss);
  return true;
}

void ResNetPipeline::forward(std::size_t index, const at::Tensor& input, const Loss& loss) {
  Stage& stage = *stages_[index];
  const at::Tensor leaf = input.detach();
  leaf.set_requires_grad(index > 0);
  const models::Pass pass{stage.slots, stage.buffers, true};
  at::Tensor out = leaf;
  for (std::size_t part = stage.first_part; part < stage.last_part; ++part)
    out = model_.forward_part(part, pass, out);
  const std::size_t number = stage.begun++;
  if (index + 1 == stages_.size()) {
    const at::Tensor value = loss(number, out);
    stage.under_way.push_back({leaf, value});
    backward(index, at::ones_like(value));
    return;
  }
  stage.under_way.push_back({leaf, out});
  send(index + 1, &Stage::inputs, out.detach());
}

void ResNetPipeline::backward(std::size_t index, const at::Tensor& slope) {
  Stage& stage = *stages_[index];
  const Stage::UnderWay one = std::move(stage.under_way.front());
  stage.under_way.pop_front();
  torch::autograd::backward({one.output}, {slope});
  ++stage.done;
  if (index > 0) send(index - 1, &Stage::slopes, one.input.grad());
}

void ResNetPipeline::send(std::size_t to, std::deque<at::Tensor> Stage::*inbox,
                          const at::Tensor& tensor) {
  Stage& stage = *stages_[to];
  at::Tensor there = tensor.to(stage.device);
  const std::lock_guard lock(mutex_);
  (stage.*inbox).push_back(std::move(there));
  moved_.notify_all();
}

}  // namespace troupe::learners
