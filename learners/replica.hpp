// What a replica's step knows about its place among the replicas, and what it can do with them.
// Given to each replica once; used by its thread only.
#pragma once

#include <memory>
#include <utility>

#include "learners/collective.hpp"

namespace troupe::learners {

// Every call on collective() is made by all replicas.
class ReplicaContext {
 public:
  explicit ReplicaContext(std::unique_ptr<Collective> collective)
      : collective_(std::move(collective)) {}

  int id() const { return collective_->rank(); }
  int replicas() const { return collective_->size(); }
  Collective& collective() { return *collective_; }

 private:
  std::unique_ptr<Collective> collective_;
};

}  // namespace troupe::learners
