// How a computation is replicated, as options: user code is the same for every choice. Torch-free.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "envs/spec/options.hpp"

namespace troupe::learners {

struct ReplicationOptions {
  std::int64_t replicas = 1;
  std::int64_t threads = 1;
  std::int64_t batch = 0;
  std::string inputs = "process";
  std::string transport = "shared_memory";
  std::int64_t sync_groups = 0;
  std::int64_t parameter_servers = 0;
  std::int64_t staleness = 16;
  std::vector<std::string> logical_devices = {"cpu"};
  std::int64_t bucket_bytes = 0;
  std::string gradients = "f32";
  Duration timeout = std::chrono::minutes(2);
};

template <class Visitor>
void describe(Visitor& visitor, ReplicationOptions& options) {
  visitor.field("replicas", options.replicas, between(1, 1024), "Replicas in each process.");
  visitor.field("threads", options.threads, between(1, 1024), "Intra-op threads of each replica.");
  visitor.field("batch", options.batch, at_least(0),
                "Rows of a step's inputs, divided over the replicas in sync; 0 without inputs.");
  visitor.choice("inputs", options.inputs, {"one", "process", "replica"},
                 "Input pipelines: one in all, one in each process, one for each replica.");
  visitor.choice("transport", options.transport, {"shared_memory", "gloo", "links"},
                 "Between processes: memory of one host, TCP in the clear, or a ring over links "
                 "that the runtime brings.");
  visitor.field("sync_groups", options.sync_groups, at_least(0),
                "Groups that are in sync inside and asynchronous to each other, over parameter "
                "servers; 0: all replicas in one, or with servers each on its own.");
  visitor.field("parameter_servers", options.parameter_servers, at_least(0),
                "Servers that parameters and optimizer state are sharded over; 0: none without "
                "sync groups, else one.");
  visitor.field("staleness", options.staleness, at_least(0),
                "Updates by others since a group took parameters, above which a server refuses "
                "its gradient.");
  visitor.field("logical_devices", options.logical_devices, anything(),
                "Device of each part of a replica: cpu, or cpu:0 and cpu:1 for two parts of it.");
  visitor.field("bucket_bytes", options.bucket_bytes, at_least(0),
                "Gradients are averaged in buckets of this size while the backward pass runs; 0: "
                "all at its end.");
  visitor.choice("gradients", options.gradients, {"f32", "f16", "bf16"},
                 "What gradients of f32 travel as between replicas; rounding errors are carried "
                 "over.");
  visitor.field("timeout", options.timeout, at_least(1),
                "How long a replica waits for the others.");
}

}  // namespace troupe::learners
