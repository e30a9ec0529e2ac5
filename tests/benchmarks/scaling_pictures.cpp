// Implements the part of the scaling benchmark that learns from pictures.
#include "tests/benchmarks/scaling_pictures.hpp"

#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>

#include <mutex>
#include <span>

#include "envs/spec/random.hpp"
#include "learners/data/picture_columns.hpp"
#include "learners/learner.hpp"
#include "models/kept_memory.hpp"
#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

constexpr std::size_t kRounds = 5;
constexpr std::int64_t kBatch = 64, kClasses = 10;
constexpr int kSteps = 9, kUncounted = 2;

PictureSpec pictures_of(const std::string& job) {
  return {.side = job == "resnet" ? 28 : 32, .channels = 1, .classes = kClasses};
}

// `items` a replica: of SN-GAN in each step of either network.
LearnerOptions options_of(std::int64_t replicas, std::int64_t items) {
  LearnerOptions options;
  options.replicas = replicas;
  options.resnet.batch = items;
  options.resnet.depth = 18;
  options.resnet.width = 16;
  options.resnet.small_stem = true;
  options.resnet.schedule.decay = "constant";
  options.sngan.batch = options.sngan.generator_batch = items;
  options.sngan.discriminator_steps = 2;
  options.sngan.generator_width = options.sngan.discriminator_width = 32;
  options.sngan.schedule.decay = "constant";
  return options;
}

std::unique_ptr<Learner> learner_of(const std::string& job, std::int64_t replicas,
                                    std::int64_t items) {
  LearnerContext context;
  context.seed = 1;
  context.pictures = pictures_of(job);
  auto made = make_learner(job, options_of(replicas, items), context);
  check(made);
  return *std::move(made);
}

replay::Batch noise(const std::string& job, std::int64_t rows) {
  const PictureSpec pictures = pictures_of(job);
  replay::Batch batch(data::picture_columns(pictures.side, pictures.channels), rows);
  Random random(1);
  for (auto& byte : batch.bytes(0)) byte = static_cast<std::uint8_t>(random.below(256));
  auto* labels = reinterpret_cast<std::int64_t*>(batch.bytes(1).data());
  for (std::int64_t row = 0; row < rows; ++row) labels[row] = row % kClasses;
  return batch;
}

// Milliseconds of an update; `items` for each replica of each process.
double updates(const std::string& job, int index, int processes,
               const std::shared_ptr<RequestLink>& link, std::int64_t replicas,
               std::int64_t items) {
  at::set_num_threads(1);
  const auto learner = learner_of(job, replicas, items * replicas * processes);
  if (processes > 1) check(learner->join({.rank = index, .size = processes, .rendezvous = link}));
  const replay::Batch batch = noise(job, learner->batch_size());
  return median_time(
      kSteps, [&] { check(learner->update(batch)); }, kUncounted);
}

struct Call {
  bool backward = false;
  std::vector<c10::IValue> inputs;
};

// The convolutions of an update as LibTorch is asked for them, operands included.
class Recorder {
 public:
  static std::vector<Call> record(const std::function<void()>& work) {
    calls().clear();
    const auto handle = at::addGlobalCallback(at::RecordFunctionCallback(&Recorder::seen)
                                                  .needsInputs(true)
                                                  .scopes({at::RecordScope::FUNCTION}));
    work();
    at::removeCallback(handle);
    return std::exchange(calls(), {});
  }

 private:
  static std::vector<Call>& calls() {
    static std::vector<Call> all;
    return all;
  }
  static std::unique_ptr<at::ObserverContext> seen(const at::RecordFunction& function) {
    static std::mutex mutex;
    const std::string_view name = function.name();
    if (name != "aten::convolution" && name != "aten::convolution_backward") return nullptr;
    const std::scoped_lock lock(mutex);
    Call call{name == "aten::convolution_backward", {}};
    for (const c10::IValue& input : function.inputs())
      call.inputs.push_back(input.isTensor() && input.toTensor().defined()
                                ? c10::IValue(input.toTensor().detach().clone())
                                : input);
    calls().push_back(std::move(call));
    return nullptr;
  }
};

void run(const Call& call) {
  static const auto forward =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::convolution", "");
  static const auto backward =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::convolution_backward", "");
  torch::jit::Stack stack(call.inputs.begin(), call.inputs.end());
  (call.backward ? backward : forward).callBoxed(stack);
}

// Milliseconds of the convolutions of an update on `items`.
double convolutions(const std::string& job, std::int64_t items) {
  at::set_num_threads(1);
  models::keep_tensor_memory();
  std::vector<Call> calls;
  {
    const auto learner = learner_of(job, 1, items);
    const replay::Batch batch = noise(job, learner->batch_size());
    check(learner->update(batch));
    calls = Recorder::record([&] { check(learner->update(batch)); });
  }
  if (calls.empty()) throw std::runtime_error("no convolution was seen");
  const at::NoGradGuard no_grad;
  return median_time(
      kSteps,
      [&] {
        for (const Call& call : calls) run(call);
      },
      kUncounted);
}

}  // namespace

Json scaling_of_pictures(const std::string& job) {
  Times times;
  for (std::size_t round = 0; round < kRounds; ++round) {
    const auto take = [&](const std::string& name, int processes, const Work& work) {
      times[name].push_back(in_children(processes, work));
    };
    const auto learner = [&job](int processes, std::int64_t replicas, std::int64_t items) {
      return [=](int index, const std::shared_ptr<RequestLink>& link) {
        return updates(job, index, processes, link, replicas, items);
      };
    };
    const auto list = [&job](int, const std::shared_ptr<RequestLink>&) {
      return convolutions(job, kBatch);
    };
    take("convolutions", 1, list);
    take("convolutions twice", 2, list);
    for (const std::int64_t items : {kBatch / 2, kBatch}) {
      const std::string each = items == kBatch ? "" : " of half";
      take("one" + each, 1, learner(1, 1, items));
      take("threads" + each, 1, learner(1, 2, items));
      take("processes" + each, 2, learner(2, 1, items));
    }
  }
  const double whole = middle(times["one"]), half = middle(times["one of half"]);
  const double compute = 2 * (whole - half);
  const auto share = [&](const std::string& two) {
    return share_of(times, "one", two, "convolutions", "convolutions twice");
  };
  return {{"one_ms", whole},
          {"pictures_per_second",
           {{"one", kBatch * 1000 / whole},
            {"two_threads", 2 * kBatch * 1000 / middle(times["threads"])},
            {"two_processes", 2 * kBatch * 1000 / middle(times["processes"])}}},
          {"convolutions_share", middle(times["convolutions"]) / whole},
          {"two_threads_over_convolutions", share("threads")},
          {"two_processes_over_convolutions", share("processes")},
          {"more",
           {{"two_convolution_processes", gain(times, "convolutions", "convolutions twice", 2)},
            {"two_threads", gain(times, "one", "threads", 2)},
            {"two_processes", gain(times, "one", "processes", 2)}}},
          {"same",
           {{"lemma", lemma(2, (whole - compute) / compute)},
            {"two_threads", gain(times, "one", "threads of half", 1)},
            {"two_processes", gain(times, "one", "processes of half", 1)}}}};
}

}  // namespace troupe::learners
