// Shards that insert as far as their sampler allows, through the real messages.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/actors/roles/sampled_shards.hpp"

namespace troupe::actors {
namespace {

using namespace troupe::actors::testing;

TEST(LedShards, InsertOnlyAsFarAsTheSamplerAllowsAndGoOnWhenItSamples) {
  std::vector<std::unique_ptr<Shard>> shards;
  for (std::uint32_t i = 0; i < 2; ++i) shards.push_back(std::make_unique<Shard>(led_table(i)));
  std::vector<std::unique_ptr<ChannelClient>> actors;
  for (std::uint32_t i = 0; i < 2; ++i)
    actors.push_back(
        open_channel_client(shards[i]->server->data_endpoint(), "actor-" + std::to_string(i) + ".1")
            .value());
  // SPI 1, min size 10, error buffer 6: 16 items without a sample.
  const auto source = remote_source(shards, source_options(4, {10, 1, 6}));
  std::uint64_t sequence[2] = {0, 0};
  const auto offer = [&](std::size_t actor, int chunks) {
    for (int i = 0; i < chunks; ++i)
      ASSERT_TRUE(actors[actor]->send(
          segment(episode(sequence[actor]++, 2, 1, static_cast<std::uint32_t>(actor)))));
  };
  const auto inserted = [&] {
    return shards[0]->table().statistics().inserted_items +
           shards[1]->table().statistics().inserted_items;
  };
  const auto first = [&] { return shards[0]->table().statistics().inserted_items; };
  offer(0, 2);
  ASSERT_TRUE(eventually([&] { return first() == 4; })) << first();
  offer(1, 20);
  // Two batches wait with the source and one is taken, so 12 samples at most are drawn.
  replay::Batch* batch = source->next(kPatience);
  ASSERT_NE(batch, nullptr);
  ASSERT_TRUE(eventually([&] { return inserted() >= 26; })) << inserted();
  std::this_thread::sleep_for(milliseconds{50});
  EXPECT_LE(inserted(), 28U);  // 16 + 12
  EXPECT_EQ(first(), 4U);
  EXPECT_GT(shards[1]->table().statistics().insert_blocked_ms, 0U);
  for (int i = 0; i < 7; ++i) {
    source->release(batch);
    batch = source->next(kPatience);
    ASSERT_NE(batch, nullptr) << source->waiting_on();
  }
  ASSERT_TRUE(eventually([&] { return inserted() == 44; })) << inserted();
  // The first shard's actor wakes up: nothing that the second did not use is withheld from it.
  offer(0, 4);
  for (int i = 0; i < 4; ++i) {
    source->release(batch);
    batch = source->next(kPatience);
    ASSERT_NE(batch, nullptr) << source->waiting_on();
  }
  EXPECT_TRUE(eventually([&] { return inserted() == 52; })) << inserted();
}

TEST(LedShards, ALearnerThatFollowsDrawsWithoutASayInWhatIsInserted) {
  std::vector<std::unique_ptr<Shard>> shards;
  shards.push_back(std::make_unique<Shard>(led_table(0)));
  const auto inserted = [&] { return shards[0]->table().statistics().inserted_items; };
  const auto actor = open_channel_client(shards[0]->server->data_endpoint(), "actor-0.1").value();
  SourceOptions following = source_options(2, {10, 0, 0});
  following.counted = 4;
  following.follows = true;
  const auto follower = remote_source(shards, following, "learner-1.1");
  for (std::uint64_t i = 0; i < 20; ++i) ASSERT_TRUE(actor->send(segment(episode(i, 2, 1))));
  std::this_thread::sleep_for(milliseconds{50});
  EXPECT_EQ(inserted(), 0U);  // nobody leads
  // SPI 1, min size 10, error buffer 6: 16 items without a sample. Each batch of 2 counts 4.
  SourceOptions leading = source_options(2, {10, 1, 6});
  leading.counted = 4;
  const auto leader = remote_source(shards, leading, "learners.1");
  for (int i = 0; i < 3; ++i) {
    replay::Batch* of_leader = leader->next(kPatience);
    replay::Batch* of_follower = follower->next(kPatience);
    ASSERT_NE(of_leader, nullptr) << leader->waiting_on();
    ASSERT_NE(of_follower, nullptr) << follower->waiting_on();
    EXPECT_EQ(of_leader->items(), 2);
    leader->release(of_leader);
    follower->release(of_follower);
  }
  EXPECT_TRUE(eventually([&] { return inserted() >= 28; })) << inserted();  // 16 + 3 x 4
  EXPECT_NE(leader->save_limiter().find("\"samples\": 12"), std::string::npos);
}

TEST(LedShards, ObeyTheNewestLifeOfASamplerAlone) {
  std::vector<std::unique_ptr<Shard>> shards;
  shards.push_back(std::make_unique<Shard>(led_table(0)));
  const auto channel = [&](const std::string& name) {
    return open_channel_client(shards[0]->server->sample_endpoint(), name).value();
  };
  const auto told = [](ChannelClient& client) {
    while (const auto message = client.receive(kPatience))
      if (const auto state = decode_state(*message)) return *state;
    return ShardState{};
  };
  const std::uint32_t epoch = shards[0]->table().options().shard_epoch;
  const auto older = channel("learners.3"), newer = channel("learners.4");
  ASSERT_TRUE(newer->send(encode_grant({0, epoch, 1, 100})));
  ASSERT_TRUE(eventually([&] { return told(*newer).allowed == 100; }));
  ASSERT_TRUE(older->send(encode_grant({0, epoch, 9, 5})));  // thawed, it believes that it leads
  ASSERT_TRUE(newer->send(encode_grant({0, epoch, 2, 200})));
  EXPECT_TRUE(eventually([&] { return told(*newer).allowed == 200; }));
  EXPECT_FALSE(older->receive(milliseconds{50}));
}

TEST(LedShards, ObeyTheHighestLeadAndTellEachWhatTheOthersDrew) {
  std::vector<std::unique_ptr<Shard>> shards;
  shards.push_back(std::make_unique<Shard>(led_table(0)));
  const auto inserted = [&] { return shards[0]->table().statistics().inserted_items; };
  const auto actor = open_channel_client(shards[0]->server->data_endpoint(), "actor-0.1").value();
  std::uint64_t sequence = 0;
  const auto offer = [&](int chunks) {
    for (int i = 0; i < chunks; ++i) ASSERT_TRUE(actor->send(segment(episode(sequence++, 2, 1))));
  };
  // SPI 1, min size 10, error buffer 6: two samplers that share the ratio; 16 items without a
  // sample.
  const auto sampler = [&](const char* name) {
    SourceOptions options = source_options(2, {10, 1, 6}, true);
    options.follows = true;
    return remote_source(shards, options, name);
  };
  auto one = sampler("learner-0.1"), two = sampler("learner-1.1");
  offer(30);
  std::this_thread::sleep_for(milliseconds{30});
  EXPECT_EQ(inserted(), 0U);  // nobody leads
  one->set_lead(1);
  // Each fills its three batches of 2 and keeps to the band together with the other: 16 + 12.
  ASSERT_TRUE(eventually([&] { return inserted() >= 28; })) << inserted();
  std::this_thread::sleep_for(milliseconds{50});
  EXPECT_EQ(inserted(), 28U);
  const auto take = [](BatchSource& source) {
    replay::Batch* batch = source.next(kPatience);
    ASSERT_NE(batch, nullptr) << source.waiting_on();
    source.release(batch);
  };
  for (int i = 0; i < 4; ++i) take(*two);
  EXPECT_TRUE(eventually([&] { return inserted() == 36; })) << inserted();
  // The lead moves while the first one is away: its leave counts no more, and what it drew does.
  one.reset();
  two->set_lead(2);
  offer(10);
  for (int i = 0; i < 4; ++i) take(*two);
  EXPECT_TRUE(eventually([&] { return inserted() == 44; })) << inserted();
  EXPECT_TRUE(eventually([&] { return two->figures().cursor == 16; })) << two->figures().cursor;
}

TEST(LedShards, AReplacementFillsUpAndKeepsTheRatio) {
  std::vector<std::unique_ptr<Shard>> shards;
  for (std::uint32_t i = 0; i < 2; ++i) shards.push_back(std::make_unique<Shard>(led_table(i)));
  const auto source = remote_source(shards, source_options(8, {20, 2, 40}));
  std::vector<std::string> endpoints;
  for (const auto& shard : shards) endpoints.push_back(shard->server->sample_endpoint());
  std::uint64_t sequence = 0, taken = 0, inserted_by_dead = 0;
  const auto run = [&](int batches) {
    std::vector<std::unique_ptr<ChannelClient>> actors;
    std::jthread feeder([&](const std::stop_token& stop) {
      for (std::uint32_t i = 0; i < 2; ++i)
        actors.push_back(open_channel_client(shards[i]->server->data_endpoint(),
                                             "actor-" + std::to_string(i) + ".1")
                             .value());
      while (!stop.stop_requested())
        for (auto& actor : actors) {
          (void)actor->send(segment(episode(sequence++, 2, 1)));
          while (!actor->receive(milliseconds{1}) && !stop.stop_requested()) {
          }
        }
    });
    for (int i = 0; i < batches; ++i) {
      replay::Batch* batch = source->next(kPatience);
      ASSERT_NE(batch, nullptr) << source->waiting_on();
      source->release(batch);
      ++taken;
    }
  };
  run(60);
  inserted_by_dead = shards[1]->table().statistics().inserted_items;
  EXPECT_GT(inserted_by_dead, 0U);
  shards[1].reset();
  source->set_endpoints({endpoints[0], ""});
  shards[1] = std::make_unique<Shard>(led_table(1, 10));
  source->set_endpoints({endpoints[0], shards[1]->server->sample_endpoint()});
  run(120);
  const std::uint64_t fresh = shards[1]->table().statistics().inserted_items;
  EXPECT_GT(fresh, 20U);
  const SourceFigures figures = source->figures();
  EXPECT_GE(figures.inserted, shards[0]->table().statistics().inserted_items + inserted_by_dead);
  // Within the band by the sampler's own counts, whatever died.
  EXPECT_LE(figures.cursor, 80);
  EXPECT_GE(figures.cursor, 0);
  EXPECT_EQ(nlohmann::json::parse(source->save_limiter())["samples"], taken * 8);
}

}  // namespace
}  // namespace troupe::actors
