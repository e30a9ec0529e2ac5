// Fills a table from episodes, without its limiter: what a run begins with, or trains from alone.
// Pure but for the table; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "envs/spec/result.hpp"
#include "replay/offline/episode.hpp"
#include "replay/table.hpp"

namespace troupe::replay {

// The worker that filled-in steps seem to come from; environment actors count from 0.
inline constexpr std::uint32_t kFillWorker = 0xffffffff;

struct FillOptions {
  // Episodes part, part + parts, part + 2 parts, … of the source.
  std::uint32_t part = 0, parts = 1;
  // The policies' versions of the source; otherwise every step counts as taken by version 0,
  // because a new run counts its own versions from there.
  bool keep_versions = false;
  // For sources whose actions are not in policy units: puts the action column into them.
  std::function<Result<void>(Chunk&)> convert_actions{};
};

struct FillReport {
  std::uint64_t episodes = 0, complete = 0, steps = 0;
  std::uint64_t skipped_episodes = 0;  // not finite, empty, or going on after their end
  std::string first_skipped;           // why, of the first
};

// Every episode goes in by Table::prefill and is closed behind: no item ever spans two entries of
// the source, and the steps of an open end that would need later ones are dropped. An episode of
// the kinds counted in skipped_episodes is passed over; any other error ends it (the table then
// holds what came before).
Result<FillReport> fill(Table& table, EpisodeSource& source, const FillOptions& options = {});

}  // namespace troupe::replay
