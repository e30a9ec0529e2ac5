// Lays out D4PG's two networks.
#include "learners/d4pg/step.hpp"

namespace troupe::learners {

D4pgModel make_d4pg_model(std::int64_t observation, std::int64_t action,
                          const D4pgOptions& options) {
  D4pgModel model;
  model.options = options;
  model.observation = observation;
  model.action = action;
  model.policy = models::dense_layers({.name = "policy",
                                       .inputs = observation,
                                       .hidden = options.policy,
                                       .outputs = action,
                                       .layer_norm = options.layer_norm,
                                       .tanh_output = true});
  model.critic = models::dense_layers({.name = "critic",
                                       .inputs = observation + action,
                                       .hidden = options.critic,
                                       .outputs = options.atoms,
                                       .layer_norm = options.layer_norm});
  model.policy_layout = models::flat_layout(model.policy);
  model.critic_layout = models::flat_layout(model.critic);
  return model;
}

}  // namespace troupe::learners
