// The table where ranks find each other, through its client and as raw bytes.
#include "learners/collectives/rendezvous.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "envs/spec/random.hpp"
#include "learners/replicas/local_processes.hpp"

namespace troupe::learners {
namespace {

using Bytes = std::vector<std::uint8_t>;
using Milliseconds = std::chrono::milliseconds;

std::unique_ptr<RendezvousClient> client(const std::shared_ptr<RendezvousTable>& table,
                                         const std::string& prefix) {
  return std::make_unique<RendezvousClient>(make_local_link(table), prefix, Milliseconds(1000));
}

TEST(Rendezvous, KeepsValuesApartByPrefix) {
  const auto table = std::make_shared<RendezvousTable>();
  const auto one = client(table, "one/"), two = client(table, "two/");
  ASSERT_TRUE(one->set("address", Bytes{1, 2}));
  EXPECT_EQ(**one->find("address"), (Bytes{1, 2}));
  EXPECT_FALSE(two->find("address")->has_value());
  EXPECT_EQ(*one->count(), 1);
  EXPECT_EQ(*two->count(), 0);
  EXPECT_TRUE(*one->erase("address"));
  EXPECT_FALSE(*one->erase("address"));
  EXPECT_EQ(table->keys(), 0U);
}

TEST(Rendezvous, CountsAndComparesAtomically) {
  const auto table = std::make_shared<RendezvousTable>();
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      const auto own = client(table, "");
      for (int k = 0; k < 250; ++k) EXPECT_TRUE(own->add("joined", 1));
    });
  threads.clear();
  const auto own = client(table, "");
  EXPECT_EQ(*own->add("joined", 0), 1000);
  EXPECT_EQ(*own->compare_set("leader", {}, Bytes{1}), Bytes{1});
  EXPECT_EQ(*own->compare_set("leader", {}, Bytes{2}), Bytes{1});
  EXPECT_EQ(*own->compare_set("leader", Bytes{1}, Bytes{2}), Bytes{2});
}

TEST(Rendezvous, NamesTheKeyThatNobodySet) {
  const auto own = client(std::make_shared<RendezvousTable>(), "group/");
  const Result<Bytes> value = own->get("memory", Milliseconds(30));
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().code, ErrorCode::kTimeout);
  EXPECT_NE(value.error().message.find("'group/memory'"), std::string::npos);
}

TEST(Rendezvous, RefusesWhatWouldNotFit) {
  const auto table = std::make_shared<RendezvousTable>(100);
  const auto own = client(table, "");
  ASSERT_TRUE(own->set("a", Bytes(90)));
  EXPECT_FALSE(own->set("b", Bytes(20)));
  ASSERT_TRUE(own->set("a", Bytes(10)));  // what it replaces counts no longer
  EXPECT_TRUE(own->set("b", Bytes(20)));
  EXPECT_FALSE(own->set(std::string(2000, 'k'), Bytes(1)));
  ASSERT_TRUE(own->set("text", Bytes{'x'}));
  EXPECT_FALSE(own->add("text", 1));
}

TEST(Rendezvous, AnswersAnyBytes) {
  RendezvousTable table;
  Random random(1);
  for (int i = 0; i < 20000; ++i) {
    Bytes request(random.below(40));
    for (std::uint8_t& byte : request) byte = static_cast<std::uint8_t>(random.below(4));
    EXPECT_FALSE(table.handle(request).empty());
  }
}

TEST(Rendezvous, ReachesOtherProcessesThroughPipes) {
  const auto children = run_local_processes(3, [](int index, std::shared_ptr<RequestLink> link) {
    RendezvousClient own(std::move(link), "p/", std::chrono::seconds(20));
    const std::string key = std::to_string(index);
    if (!own.set(key, Bytes{static_cast<std::uint8_t>(index)})) return 2;
    for (int other = 0; other < 3; ++other) {
      const Result<Bytes> value = own.get(std::to_string(other), std::chrono::seconds(20));
      if (!value || *value != Bytes{static_cast<std::uint8_t>(other)}) return 3;
    }
    return 0;
  });
  for (const LocalProcess& child : children) EXPECT_TRUE(child.clean());
}

}  // namespace
}  // namespace troupe::learners
