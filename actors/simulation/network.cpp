// Implements the links.
#include "actors/simulation/network.hpp"

#include <algorithm>

namespace troupe::actors::simulation {

Network::Network(Engine& engine, std::size_t hosts, LinkFigures between, LinkFigures within)
    : engine_(engine),
      between_(between),
      within_(within),
      out_free_(hosts),
      in_free_(hosts),
      out_busy_(hosts),
      in_busy_(hosts) {}

void Network::send(std::size_t from, std::size_t to, double bytes, Engine::Action arrived) {
  if (from == to)
    return engine_.after(within_.latency + bytes / within_.bandwidth, std::move(arrived));
  const double now = engine_.seconds(), takes = bytes / between_.bandwidth;
  const double begins = std::max(now, out_free_[from]);
  out_free_[from] = begins + takes;
  // Its bytes come in as they go out, unless others' are before them.
  in_free_[to] = std::max(begins + between_.latency, in_free_[to]) + takes;
  out_busy_[from] += takes;
  in_busy_[to] += takes;
  engine_.after(in_free_[to] - now, std::move(arrived));
}

double Network::busiest_out() const {
  return *std::max_element(out_busy_.begin(), out_busy_.end());
}

double Network::busiest_in() const { return *std::max_element(in_busy_.begin(), in_busy_.end()); }

}  // namespace troupe::actors::simulation
