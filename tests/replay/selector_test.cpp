// Selectors draw what they promise, through any order of inserts and erasures, and across a save.
#include "replay/selector.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <set>

namespace troupe::replay {
namespace {

std::vector<std::uint8_t> saved(const Selector& selector) {
  std::vector<std::uint8_t> bytes;
  ByteWriter out(bytes);
  selector.save(out);
  return bytes;
}

TEST(UniformSelector, DrawsEachKeyEquallyOften) {
  UniformSelector selector;
  for (std::uint32_t key = 0; key < 20; ++key) selector.insert(key, 1.0);
  for (std::uint32_t key = 0; key < 10; ++key) selector.erase(2 * key);
  Random random(1);
  std::vector<double> counts(20);
  constexpr int kDraws = 1000000;
  for (int i = 0; i < kDraws; ++i) {
    const auto drawn = selector.sample(random);
    EXPECT_EQ(drawn.probability, 0.1);
    ++counts[drawn.key];
  }
  double chi_square = 0;
  for (std::uint32_t key = 0; key < 20; ++key) {
    if (key % 2 == 0) {
      EXPECT_EQ(counts[key], 0);
      continue;
    }
    chi_square += (counts[key] - kDraws / 10.0) * (counts[key] - kDraws / 10.0) / (kDraws / 10.0);
  }
  EXPECT_LT(chi_square, 27.88);  // 9 degrees of freedom, p = 0.001
}

TEST(UniformSelector, HoldsExactlyWhatWasInsertedAndNotErased) {
  UniformSelector selector;
  std::set<std::uint32_t> held;
  Random random(2);
  for (int i = 0; i < 20000; ++i) {
    const auto key = static_cast<std::uint32_t>(random.below(100));
    if (held.count(key) != 0) {
      selector.erase(key);
      held.erase(key);
    } else {
      selector.insert(key, 1.0);
      held.insert(key);
    }
    ASSERT_EQ(selector.size(), held.size());
    ASSERT_TRUE(held.empty() || held.count(selector.sample(random).key) != 0);
  }
}

TEST(FifoSelector, NamesTheOldestThroughErasuresAnywhere) {
  FifoSelector selector;
  std::deque<std::uint32_t> order;
  Random random(3);
  for (int i = 0; i < 20000; ++i) {
    const auto key = static_cast<std::uint32_t>(random.below(50));
    const auto found = std::find(order.begin(), order.end(), key);
    if (found != order.end()) {
      selector.erase(key);
      order.erase(found);
    } else {
      selector.insert(key, 1.0);
      order.push_back(key);
    }
    ASSERT_EQ(selector.size(), order.size());
    ASSERT_TRUE(order.empty() || selector.sample(random).key == order.front());
  }
}

TEST(Selectors, DrawTheSameAfterSaveAndLoad) {
  for (const char* name : {"uniform", "fifo"}) {
    const auto original = make_selector(name), copy = make_selector(name);
    std::vector<bool> live(40);
    for (std::uint32_t key = 0; key < 40; ++key) original->insert(key, 1.0), live[key] = true;
    for (const std::uint32_t key : {0U, 7U, 39U, 20U}) original->erase(key), live[key] = false;
    const auto bytes = saved(*original);
    ByteReader in(bytes);
    ASSERT_TRUE(copy->load(in, live)) << name;
    EXPECT_TRUE(in.finished());
    Random one(4), two(4);
    for (int i = 0; i < 30; ++i) {
      const auto drawn = original->sample(one);
      ASSERT_EQ(copy->sample(two).key, drawn.key);
      original->erase(drawn.key);
      copy->erase(drawn.key);
    }
  }
  EXPECT_EQ(make_selector("newest"), nullptr);
}

TEST(Selectors, RefuseStatesThatAreNotTheLiveKeys) {
  for (const char* name : {"uniform", "fifo"}) {
    const auto selector = make_selector(name), target = make_selector(name);
    for (std::uint32_t key = 0; key < 3; ++key) selector->insert(key, 1.0);
    const auto bytes = saved(*selector);
    for (const std::vector<bool>& live :
         {std::vector<bool>{true, true}, {true, true, false}, {true, true, true, true}}) {
      ByteReader in(bytes);
      EXPECT_FALSE(target->load(in, live));
      EXPECT_EQ(target->size(), 0U);
    }
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      ByteReader in(std::span<const std::uint8_t>(bytes).first(size));
      EXPECT_FALSE(target->load(in, {true, true, true}));
    }
  }
}

}  // namespace
}  // namespace troupe::replay
