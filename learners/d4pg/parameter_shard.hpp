// One parameter server of D4PG: its arrays of policy and critic under Adam. Belongs to one thread.
#pragma once

#include "learners/d4pg/slices.hpp"
#include "learners/parameter_servers/server.hpp"
#include "learners/parameter_servers/shard.hpp"

namespace troupe::learners {

class D4pgParameterShard final : public ParameterShard {
 public:
  // `place` fits the model.
  D4pgParameterShard(const D4pgModel& model, const ParameterShardPlace& place);

  std::vector<std::uint8_t> answer(std::span<const std::uint8_t> request) override;
  Result<std::vector<std::uint8_t>> snapshot() const override { return server_.snapshot(); }
  Result<void> restore(std::span<const std::uint8_t> snapshot) override;
  ParameterShardFigures figures() const override;

 private:
  class Checked;  // takes first values of this server's shapes alone
  Result<void> check(const Tensors& values) const;

  const D4pgModel model_;
  const D4pgSlices slices_;
  const std::vector<D4pgSlice>& own_;
  ParameterServer server_;
};

}  // namespace troupe::learners
