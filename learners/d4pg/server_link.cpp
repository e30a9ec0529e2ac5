// Implements the worker's way to its servers.
#include "learners/d4pg/server_link.hpp"

#include <c10/core/GradMode.h>

#include <utility>

#include "learners/parameter_servers/wire.hpp"
#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

// A worker that is asked again by its own clock tries each time once.
constexpr std::chrono::milliseconds kNoPatience{0};

}  // namespace

D4pgServerLink::D4pgServerLink(const D4pgModel& model,
                               const std::vector<std::shared_ptr<RequestLink>>& links,
                               WorkerId worker, std::chrono::milliseconds answer_within)
    : model_(model), answer_within_(answer_within) {
  const D4pgSlices slices = place_slices(model, static_cast<int>(links.size()));
  for (std::size_t i = 0; i < links.size(); ++i) {
    const std::shared_ptr<ParameterService> service = make_remote_service(links[i], answer_within);
    shards_.push_back(
        {slices.of_server[i], service, ParameterWorker(service, worker, kNoPatience)});
  }
}

Tensors D4pgServerLink::of(D4pgNetworks& networks, const Shard& shard, bool gradients) const {
  Tensors tensors;
  for (const D4pgSlice& slice : shard.slices) {
    const models::FlatParameters& network = slice.of_policy ? networks.policy : networks.critic;
    const models::Segment& segment = segment_of(model_, slice);
    const at::Tensor& flat = gradients ? network.gradient() : network.values();
    tensors.push_back(
        flat.detach().narrow(0, segment.offset, segment.elements).view(segment.shape));
  }
  return tensors;
}

template <class Call>
Result<void> D4pgServerLink::round(D4pgNetworks& networks, Call call) {
  using Clock = std::chrono::steady_clock;
  const c10::NoGradGuard no_grad;
  const Clock::time_point deadline = Clock::now() + answer_within_;
  bool asked = false;
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    Shard& shard = shards_[i];
    if (shard.done) continue;
    if (std::exchange(asked, true) && Clock::now() > deadline)
      return fail(ErrorCode::kTimeout, "The parameter servers are slow.");
    const Result<Tensors> values = call(shard);
    const Tensors own = of(networks, shard, false);
    bool fits = values && values->size() == own.size();
    for (std::size_t k = 0; fits && k < own.size(); ++k)
      fits = (*values)[k].sizes() == own[k].sizes();
    if (!fits)
      return fail(
          values ? ErrorCode::kCorrupt : values.error().code,
          "Parameter server " + std::to_string(i) + ": " +
              (values ? "its values are not those that were asked for." : values.error().message));
    for (std::size_t k = 0; k < own.size(); ++k) own[k].copy_((*values)[k]);
    shard.done = true;
  }
  for (Shard& shard : shards_) shard.done = false;
  return {};
}

Result<void> D4pgServerLink::begin(D4pgNetworks& networks) {
  return round(networks, [&](Shard& shard) {
    const Tensors first = of(networks, shard, false);
    return shard.worker.begin(&first);
  });
}

Result<void> D4pgServerLink::update(D4pgNetworks& networks) {
  return round(networks,
               [&](Shard& shard) { return shard.worker.update(of(networks, shard, true)); });
}

Result<void> D4pgServerLink::refresh(D4pgNetworks& networks) {
  const Result<void> fresh = round(networks, [](Shard& shard) { return shard.worker.refresh(); });
  // It is not asked again: the next round is another one.
  for (Shard& shard : shards_) shard.done = false;
  return fresh;
}

UpdateLedger D4pgServerLink::ledger() const {
  UpdateLedger sum;
  for (const Shard& shard : shards_) {
    const UpdateLedger& one = shard.worker.ledger();
    sum.sent += one.sent;
    sum.rolled_back += one.rolled_back;
    sum.refused += one.refused;
    sum.rebirths += one.rebirths;
  }
  return sum;
}

}  // namespace troupe::learners
