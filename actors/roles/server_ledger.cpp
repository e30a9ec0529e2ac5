// Implements the count.
#include "actors/roles/server_ledger.hpp"

namespace troupe::actors {

std::uint64_t ServerLedger::began(std::uint64_t version) {
  const std::uint64_t lost = life_.version > version ? life_.version - version : 0;
  rolled_back_ += lost;
  earlier_ += life_.applied;
  life_ = {.version = version};
  return lost;
}

void ServerLedger::says(const ServerLife& life) {
  if (life.applied >= life_.applied) life_ = life;
}

}  // namespace troupe::actors
