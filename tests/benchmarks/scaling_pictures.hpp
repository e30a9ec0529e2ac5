// ResNet and SN-GAN on two replicas, for the scaling benchmark.
#pragma once

#include <string>

#include "tests/benchmarks/scaling_children.hpp"

namespace troupe::learners {

// `job`: "resnet" | "sngan", of the networks of configs/*_fashion_mnist.yaml, one thread a replica.
// `more`: each replica has a batch of its own, and two processes that run the convolutions of an
// update, forward and backward, and nothing else, show what the machine allows. `same`: a global
// batch of that size; R is taken from one replica's updates on it and on half of it.
Json scaling_of_pictures(const std::string& job);

}  // namespace troupe::learners
