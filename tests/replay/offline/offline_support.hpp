// Tables whose content is compared item by item, whatever keys and slots it has, and h5py as the
// judge of files.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "replay/offline/episode_reader.hpp"
#include "replay/offline/episode_writer.hpp"
#include "replay/offline/fill.hpp"
#include "replay/offline/stored_episodes.hpp"
#include "tests/replay/support.hpp"
#include "tests/support/python.hpp"
#include "tests/support/temporary_folder.hpp"

namespace troupe::replay::testing {

using Floats = std::vector<float>;
// Observation, action, reward, discount, next observation, version: all that a batch says of an
// item but its key.
using ItemContent = std::tuple<Floats, Floats, float, float, Floats, std::uint64_t>;

// Every item that a table holds, in no order. Draws until each was seen; the draws are seeded.
inline std::multiset<ItemContent> items_of(Table& table) {
  const auto held = static_cast<std::size_t>(table.statistics().held_items);
  std::multiset<ItemContent> items;
  std::set<std::uint32_t> seen;
  for (int round = 0; seen.size() < held && round < 1000; ++round) {
    const Batch batch = take_batch(table, held);
    const auto row = [&](const char* name, std::size_t i) {
      const std::span<const float> all = batch.floats(name);
      const std::size_t width = all.size() / held;
      return Floats(all.begin() + static_cast<std::ptrdiff_t>(i * width),
                    all.begin() + static_cast<std::ptrdiff_t>((i + 1) * width));
    };
    for (std::size_t i = 0; i < held; ++i) {
      if (!seen.insert(batch.keys[i].slot).second) continue;
      items.emplace(row("observation", i), row("action", i), batch.floats("reward")[i],
                    batch.floats("discount")[i], row("next_observation", i), batch.versions[i]);
    }
  }
  EXPECT_EQ(seen.size(), held);
  return items;
}

inline EpisodeFileHead head_of(const TableSnapshot& snapshot) {
  return {.signature = snapshot.signature,
          .environment = "made_up",
          .action = std::nullopt,
          .discount = snapshot.options.discount,
          .n_step = snapshot.options.n_step};
}

inline EpisodeTotals export_table(Table& table, const std::filesystem::path& path,
                                  int deflate = 4) {
  const TableSnapshot snapshot = table.snapshot();
  StoredEpisodes episodes(snapshot);
  auto writer = EpisodeWriter::create(path, head_of(snapshot), {.deflate = deflate}).value();
  for (std::size_t i = 0; i < episodes.size(); ++i) {
    const auto added = writer->add(episodes.read(i).value());
    EXPECT_TRUE(added) << added.error().message;
  }
  writer->leave_out(episodes.steps_left_out());
  return writer->commit().value();
}

inline FillReport import_table(Table& table, const std::filesystem::path& path) {
  auto file = open_episode_file(path, table.signature());
  EXPECT_TRUE(file) << file.error().message;
  const auto report = fill(table, **file, {.keep_versions = true});
  EXPECT_TRUE(report) << report.error().message;
  return *report;
}

}  // namespace troupe::replay::testing
