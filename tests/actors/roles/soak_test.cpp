// Many messages through a channel, a shard and a sampler: memory stays flat. 20 000 chunks here;
// TROUPE_SOAK_MESSAGES=1000000 for the long way.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "tests/actors/roles/sampled_shards.hpp"

namespace troupe::actors {
namespace {

using namespace troupe::actors::testing;

double resident_mib() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t all = 0, resident = 0;
  file >> all >> resident;
  return static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

// Takes batches as they come, and gives priorities back.
void consume(BatchSource& source, const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    replay::Batch* batch = source.next(milliseconds{10});
    if (batch == nullptr) continue;
    source.update_priorities(batch->keys, std::vector<float>(batch->keys.size(), 0.5F));
    source.release(batch);
  }
}

TEST(Soak, ManyChunksThroughAShardLeaveMemoryFlat) {
  const char* wanted = std::getenv("TROUPE_SOAK_MESSAGES");
  const std::uint64_t messages = wanted == nullptr ? 20000 : std::strtoull(wanted, nullptr, 10);
  replay::TableOptions options = testing::table_options(0);
  options.limiter.kind = replay::LimiterKind::kAllowance;
  options.selector = "prioritised";
  options.capacity = 1000;
  std::vector<std::unique_ptr<Shard>> shards;
  shards.push_back(std::make_unique<Shard>(make_table(options)));
  const auto source = remote_source(shards, source_options(32, {100, 4, 400}));
  auto actor = open_channel_client(shards[0]->server->data_endpoint(), "actor-0.1").value();
  std::jthread learner([&](const std::stop_token& stop) { consume(*source, stop); });
  // Four chunks of two items under way, as an environment actor has.
  std::uint64_t sent = 0, acknowledged = 0;
  double warm = 0;
  while (acknowledged < messages) {
    while (sent < messages && sent < acknowledged + 4)
      ASSERT_TRUE(actor->send(segment(episode(sent++, 2, 1))));
    if (const auto answer = actor->receive(milliseconds{1000})) {
      ASSERT_EQ(answer->kind, static_cast<std::uint8_t>(DataKind::kAck));
      ++acknowledged;
    }
    if (acknowledged == messages / 4 && warm == 0) warm = resident_mib();
  }
  const double grown = resident_mib() - warm;
  EXPECT_LT(grown, 8) << "from " << warm << " MiB";
  const replay::TableStatistics statistics = shards[0]->table().statistics();
  EXPECT_EQ(statistics.inserted_steps, 2 * messages);
  EXPECT_EQ(statistics.held_items, 1000U);
  EXPECT_EQ(statistics.inserted_items, statistics.held_items + statistics.removed_items);
  EXPECT_EQ(statistics.duplicate_chunks, 0U);
  EXPECT_NEAR(source->figures().samples_per_insert, 4, 0.2);
}

}  // namespace
}  // namespace troupe::actors
