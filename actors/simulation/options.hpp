// What a simulated run consists of and what each part of it costs, every option described once.
// Plain values. Times are seconds, those of computing of a core that is busy alone.
#pragma once

#include <cstdint>

namespace troupe::actors::simulation {

struct Options {
  // The run, as in its configuration.
  std::int64_t actors = 1, environments = 1, credit = 2;
  std::int64_t shards = 1, learners = 1;
  bool shards_with_learner = true;
  double samples_per_insert = 0, error_buffer = 0;
  std::int64_t min_size = 1000, batch = 256, prefetch = 4, n_step = 1, publish_every = 50;
  std::int64_t episode_steps = 1000;
  std::int64_t seed = 1;
  // The machines.
  std::int64_t hosts = 1, cores = 2;
  double full_speed = 1;
  double latency = 100e-6, bandwidth = 1.25e9;  // between hosts
  double local_latency = 30e-6, local_bandwidth = 4e9;
  // What is measured.
  double warm_up = 2, seconds = 10;
  // Costs.
  double step = 20e-6, reset = 0, chunk = 20e-6, take_parameters = 100e-6;
  double send_chunk = 5e-6, send_step = 0, receive_chunk = 5e-6, receive_step = 0;
  double insert_chunk = 10e-6, insert_step = 0.2e-6;
  double sample_batch = 20e-6, sample_item = 0.3e-6, send_item = 0.3e-6, receive_item = 0.3e-6;
  double update = 0, update_item = 0, publish = 100e-6, publish_each = 10e-6;
  double message = 20e-6, messages = 31;
  double node = 0.005, poll = 0.05, shared = 0;
  // Sizes in bytes.
  double step_bytes = 100, item_bytes = 200, parameter_bytes = 400e3, gradient_bytes = 1e6;
};

// visitor.field(name, member, doc).
template <class Visitor>
void describe(Visitor& visitor, Options& o) {
  visitor.field("actors", o.actors, "Environment actors.");
  visitor.field("environments", o.environments, "Environments of each.");
  visitor.field("credit", o.credit, "Chunks that each may have unacknowledged.");
  visitor.field("shards", o.shards, "Replay shards.");
  visitor.field("learners", o.learners, "Learners, which apply every update together.");
  visitor.field("shards_with_learner", o.shards_with_learner,
                "Shards in the one learner's process instead of processes of their own.");
  visitor.field("samples_per_insert", o.samples_per_insert, "0: no ratio.");
  visitor.field("error_buffer", o.error_buffer, "0: 0.1 x min_size x samples_per_insert.");
  visitor.field("min_size", o.min_size, "Items before the first sample.");
  visitor.field("batch", o.batch, "Items of an update, of all learners together.");
  visitor.field("prefetch", o.prefetch, "Batches drawn ahead of each learner.");
  visitor.field("n_step", o.n_step, "Steps of an item.");
  visitor.field("publish_every", o.publish_every, "Updates between parameter sets.");
  visitor.field("episode_steps", o.episode_steps, "Control steps of an episode.");
  visitor.field("seed", o.seed, "Of all draws.");
  visitor.field("hosts", o.hosts, "Machines. Learners come first, one each, then shards.");
  visitor.field("cores", o.cores, "Of each machine.");
  visitor.field("full_speed", o.full_speed,
                "Speed of a core while all of its machine are busy; 1: that of one alone.");
  visitor.field("latency", o.latency, "Between machines, one way.");
  visitor.field("bandwidth", o.bandwidth, "Of each machine, bytes a second each way.");
  visitor.field("local_latency", o.local_latency, "Between processes of a machine.");
  visitor.field("local_bandwidth", o.local_bandwidth, "Likewise.");
  visitor.field("warm_up", o.warm_up, "Simulated seconds before figures are taken.");
  visitor.field("seconds", o.seconds, "Simulated seconds of which they are taken.");
  visitor.field("step", o.step, "A control step of one environment with its action.");
  visitor.field("reset", o.reset, "The beginning of an episode.");
  visitor.field("chunk", o.chunk, "Making and sending a chunk, and taking its answer.");
  visitor.field("take_parameters", o.take_parameters, "An actor takes a parameter set.");
  visitor.field("send_chunk", o.send_chunk, "Threads that carry a chunk away.");
  visitor.field("send_step", o.send_step, "And each of its steps.");
  visitor.field("receive_chunk", o.receive_chunk, "Threads that bring it to its shard.");
  visitor.field("receive_step", o.receive_step, "And each of its steps.");
  visitor.field("insert_chunk", o.insert_chunk, "A shard takes a chunk.");
  visitor.field("insert_step", o.insert_step, "And each of its steps.");
  visitor.field("sample_batch", o.sample_batch, "Drawing a batch, or a shard's part of it.");
  visitor.field("sample_item", o.sample_item, "And each of its items.");
  visitor.field("send_item", o.send_item, "Sending an item to a learner elsewhere.");
  visitor.field("receive_item", o.receive_item, "And taking it there.");
  visitor.field("update", o.update, "An update, whatever the size of the batch.");
  visitor.field("update_item", o.update_item, "And each item of a learner's part of it.");
  visitor.field("publish", o.publish, "Making a parameter set.");
  visitor.field("publish_each", o.publish_each, "And sending it to one actor.");
  visitor.field("message", o.message, "The coordinator's process handles a node's message.");
  visitor.field("messages", o.messages, "Of an environment actor's node, a second.");
  visitor.field("node", o.node, "Cores that each node takes besides its role's work.");
  visitor.field("poll", o.poll, "Cores that looking at channels takes a shard of its own.");
  visitor.field("shared", o.shared, "Cores of the first machine that all else of the run takes.");
  visitor.field("step_bytes", o.step_bytes, "Of a step on its way to a shard.");
  visitor.field("item_bytes", o.item_bytes, "Of an item on its way to a learner.");
  visitor.field("parameter_bytes", o.parameter_bytes, "Of a parameter set.");
  visitor.field("gradient_bytes", o.gradient_bytes, "That learners reduce in each update.");
}

}  // namespace troupe::actors::simulation
