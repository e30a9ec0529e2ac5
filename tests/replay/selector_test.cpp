// Selectors draw what they promise, through any order of inserts and erasures, and across a save.
#include "replay/selector.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <string>

#include "tests/replay/selector_support.hpp"

namespace troupe::replay {
namespace {

using namespace testing;

constexpr int kDraws = 1000000;

// A plain list of what a selector should hold, for comparison.
struct Model {
  struct Entry {
    std::uint32_t key;
    float priority;
    bool given;
  };
  std::vector<Entry> entries;  // in the order of insertion
  float latest_default = 1;

  auto find(std::uint32_t key) {
    return std::find_if(entries.begin(), entries.end(), [&](auto& e) { return e.key == key; });
  }
  bool holds(std::uint32_t key) { return find(key) != entries.end(); }
  void insert(std::uint32_t key, std::optional<double> priority) {
    float used = latest_default;
    if (priority) {
      used = static_cast<float>(*priority);
    } else {
      float highest = -1;
      for (const Entry& entry : entries)
        if (entry.given) highest = std::max(highest, entry.priority);
      if (highest >= 0) used = latest_default = highest;
    }
    entries.push_back({key, used, priority.has_value()});
  }
  std::uint32_t largest() const {
    return std::max_element(entries.begin(), entries.end(),
                            [](auto& a, auto& b) { return a.priority < b.priority; })
        ->key;
  }
  std::uint32_t smallest() const {
    return std::min_element(entries.begin(), entries.end(),
                            [](auto& a, auto& b) { return a.priority < b.priority; })
        ->key;
  }
};

// Priorities with many ties.
double some_priority(Random& random) { return 0.25 * static_cast<double>(random.below(6)); }

// One random insert, erase or update on a selector and its model.
void step(Selector& selector, Model& model, std::uint32_t keys, Random& random) {
  const auto key = static_cast<std::uint32_t>(random.below(keys));
  if (!model.holds(key)) {
    std::optional<double> priority;
    if (random.below(2) == 0) priority = some_priority(random);
    selector.insert(key, priority);
    model.insert(key, priority);
  } else if (random.below(2) == 0) {
    selector.erase(key);
    model.entries.erase(model.find(key));
  } else {
    const double priority = some_priority(random);
    selector.update(key, priority);
    model.find(key)->priority = static_cast<float>(priority);
    model.find(key)->given = true;
  }
}

TEST(UniformSelector, DrawsEachKeyEquallyOften) {
  const auto selector = make_selector(kUniform);
  for (std::uint32_t key = 0; key < 20; ++key) selector->insert(key, 1.0 + key);
  for (std::uint32_t key = 0; key < 10; ++key) selector->erase(2 * key);
  Random random(1);
  std::vector<double> exact(20);
  for (std::uint32_t key = 1; key < 20; key += 2) exact[key] = 0.1;
  EXPECT_EQ(selector->sample(random).probability, 0.1);
  EXPECT_EQ(selector->population().mass, 10);
  EXPECT_EQ(selector->population().min_probability, 0.1);
  EXPECT_LT(chi_square(count_draws(*selector, 20, kDraws, random), exact), chi_square_limit(9));
}

TEST(PrioritisedSelector, DrawsInProportionToThePowerOfThePriority) {
  for (const double exponent : {0.0, 0.6, 1.0, 2.0})
    for (const std::uint32_t keys : {3U, 16U, 17U, 300U}) {
      const auto selector = make_selector(kPrioritised, {.priority_exponent = exponent});
      Random random(7);
      std::vector<double> exact(keys);
      double total = 0;
      for (std::uint32_t key = 0; key < keys; ++key) {
        const double priority = 0.1 + random.uniform() + key % 5;
        selector->insert(key, key % 2 == 0 ? priority : 0.5);
        if (key % 2 == 1) selector->update(key, priority);
        total += exact[key] = std::pow(priority, exponent);
      }
      for (double& mass : exact) mass /= total;
      const auto drawn = selector->sample(random);
      EXPECT_NEAR(drawn.probability, exact[drawn.key], 1e-6 * exact[drawn.key]);
      EXPECT_NEAR(selector->population().mass, total, 1e-6 * total);
      const double smallest = *std::min_element(exact.begin(), exact.end());
      EXPECT_NEAR(selector->population().min_probability, smallest, 1e-6 * smallest);
      EXPECT_LT(chi_square(count_draws(*selector, keys, kDraws, random), exact),
                chi_square_limit(keys - 1))
          << keys << " keys, exponent " << exponent;
    }
}

TEST(PrioritisedSelector, NeverDrawsPriorityZeroUnlessAllAreZero) {
  const auto selector = make_selector(kPrioritised, {.priority_exponent = 1});
  std::vector<double> exact(40);
  for (std::uint32_t key = 0; key < 40; ++key) {
    selector->insert(key, key % 4 == 0 ? 1.0 : 0.0);
    if (key % 4 == 0) exact[key] = 0.1;
  }
  Random random(8);
  EXPECT_LT(chi_square(count_draws(*selector, 40, kDraws, random), exact), chi_square_limit(9));
  EXPECT_EQ(selector->population().min_probability, 0.1);

  for (std::uint32_t key = 0; key < 40; key += 4) selector->update(key, 0);
  for (std::uint32_t key = 30; key < 40; ++key) selector->erase(key);
  exact.assign(40, 1.0 / 30);
  std::fill(exact.begin() + 30, exact.end(), 0.0);
  EXPECT_EQ(selector->sample(random).probability, 1.0 / 30);
  EXPECT_EQ(selector->population().mass, 0);
  EXPECT_EQ(selector->population().min_probability, 1.0 / 30);
  EXPECT_LT(chi_square(count_draws(*selector, 40, kDraws, random), exact), chi_square_limit(29));
}

TEST(OrderedSelectors, NameTheOldestAndTheNewestThroughErasuresAnywhere) {
  for (const std::string_view name : {kFifo, kLifo}) {
    const auto selector = make_selector(name);
    Model model;
    Random random(3);
    for (int i = 0; i < 20000; ++i) {
      step(*selector, model, 50, random);
      ASSERT_EQ(selector->size(), model.entries.size());
      if (model.entries.empty()) continue;
      const auto drawn = selector->sample(random);
      ASSERT_EQ(drawn.key, name == kFifo ? model.entries.front().key : model.entries.back().key);
      ASSERT_EQ(drawn.probability, 1);
    }
  }
}

TEST(HeapSelectors, NameTheFirstInsertedOfTheExtremePriority) {
  for (const std::string_view name : {kMaxHeap, kMinHeap}) {
    const auto selector = make_selector(name);
    Model model;
    Random random(4);
    for (int i = 0; i < 50000; ++i) {
      step(*selector, model, 60, random);
      ASSERT_EQ(selector->size(), model.entries.size());
      if (model.entries.empty()) continue;
      // std::max_element and min_element name the first of several, like the selectors.
      ASSERT_EQ(selector->sample(random).key, name == kMaxHeap ? model.largest() : model.smallest())
          << name;
    }
  }
}

TEST(Selectors, HoldExactlyWhatWasInsertedAndNotErased) {
  for (const std::string_view name : selector_names()) {
    const auto selector = make_selector(name);
    EXPECT_EQ(selector->population().mass, 0);
    Model model;
    Random random(2);
    for (int i = 0; i < 20000; ++i) {
      step(*selector, model, 100, random);
      ASSERT_EQ(selector->size(), model.entries.size());
      ASSERT_TRUE(model.entries.empty() || model.holds(selector->sample(random).key)) << name;
    }
  }
}

TEST(Selectors, GiveNewKeysTheHighestPriorityThatWasGivenAndIsStillHeld) {
  // Shown by the max heap, where the key of the highest priority that came first is drawn.
  const auto first = [](Selector& selector) {
    Random random(1);
    return selector.sample(random).key;
  };
  const auto selector = make_selector(kMaxHeap);
  selector->insert(0, std::nullopt);  // 1
  selector->update(0, 0.01);
  selector->insert(1, std::nullopt);  // 0.01: what was given, not the 1 of the beginning
  EXPECT_EQ(first(*selector), 0U);
  selector->update(0, 0.005);
  EXPECT_EQ(first(*selector), 1U);
  selector->insert(2, std::nullopt);  // 0.005; that of key 1 was never given
  selector->erase(1);
  EXPECT_EQ(first(*selector), 0U);
  selector->insert(3, 0.02);
  selector->insert(4, std::nullopt);  // 0.02
  selector->erase(3);
  EXPECT_EQ(first(*selector), 4U);
  selector->erase(0);
  selector->insert(5, std::nullopt);  // no given one is left: as the last default, 0.02
  selector->erase(4);
  EXPECT_EQ(first(*selector), 5U);
}

TEST(Selectors, DrawManyAtOnceAsTheyDrawOneByOne) {
  for (const std::string_view name : selector_names())
    for (const std::uint32_t keys : {1U, 100U, 300000U}) {
      if (keys > 100 && name != kPrioritised && name != kUniform) continue;
      auto selector = make_selector(name);
      Random priorities(7);
      for (std::uint32_t key = 0; key < keys; ++key) selector->insert(key, priorities.uniform());
      Random one(3), many(3);
      std::vector<Selector::Drawn> drawn;
      selector->sample_many(many, 500, drawn);
      ASSERT_EQ(drawn.size(), 500U);
      for (const Selector::Drawn& got : drawn) {
        const Selector::Drawn expected = selector->sample(one);
        ASSERT_EQ(got.key, expected.key) << name;
        ASSERT_EQ(got.probability, expected.probability) << name;
      }
      EXPECT_EQ(one.state(), many.state());
    }
}

// As a table hands its slots out and takes them back.
TEST(OrderedSelectors, TakeNextToNothingForKeysInOrder) {
  auto fifo = make_selector(kFifo);
  Random random(1);
  constexpr std::uint32_t kKeys = 100000;
  for (std::uint32_t key = 0; key < kKeys; ++key) fifo->insert(key, {});
  for (std::uint32_t i = 0; i < 3 * kKeys; ++i) {
    const std::uint32_t oldest = fifo->sample(random).key;
    ASSERT_EQ(oldest, i % kKeys);
    fifo->erase(oldest);
    fifo->insert(oldest, {});
  }
  EXPECT_LT(fifo->memory_bytes(), 1000U);
}

TEST(Selectors, DrawTheSameAfterSaveAndLoad) {
  for (const std::string_view name : selector_names()) {
    const auto original = make_selector(name), copy = make_selector(name);
    Model model;
    Random random(5);
    for (int i = 0; i < 500; ++i) step(*original, model, 70, random);
    std::vector<bool> live(70);
    for (const auto& entry : model.entries) live[entry.key] = true;
    copy->insert(3, 0.5);  // load replaces it
    const auto bytes = saved(*original);
    ByteReader in(bytes);
    ASSERT_TRUE(copy->load(in, live)) << name;
    EXPECT_TRUE(in.finished());
    EXPECT_EQ(saved(*copy), bytes) << name;
    Random one(4), two(4), steps(6), same_steps(6);
    Model same = model;
    for (int i = 0; i < 2000; ++i) {
      step(*original, model, 70, steps);
      step(*copy, same, 70, same_steps);
      if (model.entries.empty()) continue;
      const auto a = original->sample(one), b = copy->sample(two);
      ASSERT_EQ(a.key, b.key) << name;
      ASSERT_EQ(a.probability, b.probability) << name;
    }
  }
  EXPECT_EQ(make_selector("newest"), nullptr);
}

TEST(Selectors, RefuseStatesThatAreNotTheLiveKeys) {
  for (const std::string_view name : selector_names()) {
    const auto selector = make_selector(name), target = make_selector(name);
    for (std::uint32_t key = 0; key < 3; ++key) selector->insert(key, 1.0 + key);
    const auto bytes = saved(*selector);
    for (const std::vector<bool>& live :
         {std::vector<bool>{true, true}, {true, true, false}, {true, true, true, true}}) {
      ByteReader in(bytes);
      EXPECT_FALSE(target->load(in, live)) << name;
      EXPECT_EQ(target->size(), 0U);
    }
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      ByteReader in(std::span<const std::uint8_t>(bytes).first(size));
      EXPECT_FALSE(target->load(in, {true, true, true})) << name << " " << size;
    }
  }
}

// Whatever the bytes: a state that is taken holds the live keys and draws only those.
TEST(Selectors, SurviveEveryChangedByteOfTheirState) {
  for (const std::string_view name : selector_names()) {
    const auto selector = make_selector(name);
    for (std::uint32_t key = 0; key < 18; ++key) selector->insert(key, 0.5 * (key % 5));
    const auto bytes = saved(*selector);
    const std::vector<bool> live(18, true);
    for (std::size_t i = 0; i < bytes.size(); ++i)
      for (const int change : {1, 0x80, 0xff}) {
        auto changed = bytes;
        changed[i] = static_cast<std::uint8_t>(changed[i] ^ change);
        const auto target = make_selector(name);
        ByteReader in(changed);
        if (!target->load(in, live)) continue;
        Random random(i);
        EXPECT_LT(target->population().mass, std::numeric_limits<double>::infinity());
        for (std::uint32_t left = 18; left > 0; --left) {
          ASSERT_EQ(target->size(), left);
          const auto drawn = target->sample(random);
          ASSERT_LT(drawn.key, 18U);
          ASSERT_GT(drawn.probability, 0);
          target->insert(18, std::nullopt);
          target->erase(18);
          target->erase(drawn.key);
        }
        ASSERT_EQ(target->size(), 0U);
      }
  }
}

}  // namespace
}  // namespace troupe::replay
