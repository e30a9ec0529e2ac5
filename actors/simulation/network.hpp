// Simulated links: every host sends and receives one message after the other at its bandwidth, and
// each takes the latency on its way; within a host there is only a delay. Order is kept between any
// two hosts. One owner.
#pragma once

#include <cstddef>
#include <vector>

#include "actors/simulation/engine.hpp"

namespace troupe::actors::simulation {

struct LinkFigures {
  double latency = 0;    // s, one way
  double bandwidth = 0;  // bytes a second, each way
};

class Network {
 public:
  Network(Engine& engine, std::size_t hosts, LinkFigures between, LinkFigures within);

  // `arrived` happens when the last byte is there.
  void send(std::size_t from, std::size_t to, double bytes, Engine::Action arrived);
  // Of the busiest host since the beginning: seconds in which it sent, or received.
  double busiest_out() const;
  double busiest_in() const;

 private:
  Engine& engine_;
  const LinkFigures between_, within_;
  std::vector<double> out_free_, in_free_, out_busy_, in_busy_;  // by host
};

}  // namespace troupe::actors::simulation
