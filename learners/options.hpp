// Options of the learning side, each field described once (envs/spec/options.hpp says how).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "envs/spec/options.hpp"
#include "learners/gan/options.hpp"
#include "learners/supervised/options.hpp"

namespace troupe::learners {

// Hyper-parameters of D4PG (Barth-Maron et al. 2018, arXiv:1804.08617); defaults are those of the
// authors' later implementation in Acme.
struct D4pgOptions {
  std::int64_t batch = 256;
  std::int64_t n_step = 5;
  double discount = 0.99;
  double learning_rate = 1e-4;       // both networks unless the next two say otherwise
  double policy_learning_rate = 0;   // 0: learning_rate
  double critic_learning_rate = 0;   // 0: learning_rate
  double gradient_clip = 40;         // global norm, per network; 0: none
  double action_gradient_clip = 1;   // per element of dQ/da; 0: none
  std::int64_t target_period = 100;  // hard copy every so many updates
  double v_min = -150, v_max = 150;
  std::int64_t atoms = 51;
  double sigma = 0.3;  // exploration noise of the environment actors, in [-1, 1] units
  std::vector<std::int64_t> policy = {256, 256, 256};
  std::vector<std::int64_t> critic = {512, 512, 256};
  bool layer_norm = true;  // LayerNorm and tanh after the first layer
  bool normalise_observations = false;
  std::string step = "auto";  // who computes gradients: auto | autograd | fused
};

template <class Visitor>
void describe(Visitor& visitor, D4pgOptions& options) {
  visitor.field("batch", options.batch, between(1, 1 << 20),
                "Items per update, divided over the synchronised replicas.");
  visitor.field("n_step", options.n_step, between(1, 1000), "Rewards summed before bootstrapping.");
  visitor.field("discount", options.discount, between(0, 1), "Discount per control step.");
  visitor.field("learning_rate", options.learning_rate, above(0),
                "Adam step size of both networks.");
  visitor.field("policy_learning_rate", options.policy_learning_rate, at_least(0),
                "Adam step size of the policy; 0 takes learning_rate.");
  visitor.field("critic_learning_rate", options.critic_learning_rate, at_least(0),
                "Adam step size of the critic; 0 takes learning_rate.");
  visitor.field("gradient_clip", options.gradient_clip, at_least(0),
                "Largest global gradient norm of each network; 0 turns clipping off.");
  visitor.field("action_gradient_clip", options.action_gradient_clip, at_least(0),
                "Largest |dQ/da| per element; 0 turns clipping off.");
  visitor.field("target_period", options.target_period, at_least(1),
                "Updates between copies of the networks to their targets.");
  visitor.field("v_min", options.v_min, anything(), "Lowest value of the critic's support.");
  visitor.field("v_max", options.v_max, anything(), "Highest value of the critic's support.");
  visitor.field("atoms", options.atoms, between(2, 10001), "Atoms of the critic's support.");
  visitor.field("sigma", options.sigma, at_least(0),
                "Standard deviation of the exploration noise, for actions scaled to [-1, 1].");
  visitor.field("policy", options.policy, between(1, 65536),
                "Widths of the policy's hidden layers.");
  visitor.field("critic", options.critic, between(1, 65536),
                "Widths of the critic's hidden layers.");
  visitor.field("layer_norm", options.layer_norm,
                "LayerNorm and tanh after the first layer of both networks.");
  visitor.field("normalise_observations", options.normalise_observations,
                "Scale observations by their running mean and variance.");
  visitor.choice(
      "step", options.step, {"auto", "autograd", "fused"},
      "Gradients by LibTorch's autograd or by the fused CPU kernels; auto takes the fastest.");
}

// How the learning is spread out.
struct LearnerOptions {
  std::int64_t replicas = 1;
  std::int64_t threads = 1;  // intra-op threads of each replica
  std::vector<std::string> devices = {"cpu"};
  std::int64_t metrics_every = 100;
  std::int64_t publish_every = 50;
  std::int64_t prefetch = 4;
  // Of several learners.
  std::string transport = "shared_memory";
  Duration timeout = std::chrono::seconds(10);
  D4pgOptions d4pg;
  ClassifierOptions resnet;
  GanOptions sngan;
};

// d4pg, resnet and sngan are described as sections of their own by the job.
template <class Visitor>
void describe(Visitor& visitor, LearnerOptions& options) {
  visitor.field("replicas", options.replicas, between(1, 1024),
                "Copies of the computation inside each learner.");
  visitor.field("threads", options.threads, between(1, 1024), "Intra-op threads of each replica.");
  visitor.field("devices", options.devices, anything(), "Device of each replica, in turn: cpu.");
  visitor.field("metrics_every", options.metrics_every, at_least(1),
                "Updates between measurements of losses and norms.");
  visitor.field("publish_every", options.publish_every, at_least(1),
                "Updates between publications of the policy.");
  visitor.field("prefetch", options.prefetch, between(1, 64), "Batches sampled ahead.");
  visitor.choice("transport", options.transport, {"shared_memory", "gloo"},
                 "Between several learners: memory of their host, or TCP in the clear.");
  visitor.field("timeout", options.timeout, at_least(100),
                "How long a learner waits for another one before it goes on without it.");
}

}  // namespace troupe::learners
