// A table's records, and the cut of them that a checkpoint is written from: blocks of records are
// shared with the table until it changes them, and chunks that leave the table after the cut are
// kept for it. A cut is read by one thread while its table works on.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "replay/cow_vector.hpp"
#include "replay/item_builder.hpp"
#include "replay/packed_chunk.hpp"

namespace troupe::replay {

// One slot of the table. `generation` counts the table's items, so that it differs between the
// items that the slot has held. How many steps the item has follows from its chunks. Checkpoints
// hold it as it lies in memory.
struct ItemRecord {
  static constexpr std::uint32_t kMaxRow = (1U << 24) - 1, kMaxLead = (1U << 7) - 1;

  ChunkSlot chunk = 0;
  std::uint32_t row : 24 = 0;
  std::uint32_t lead : 7 = 0;  // see BuiltItem
  std::uint32_t live : 1 = 0;
  std::uint32_t value = 0;  // bits of an n-step item's reward; of another, the steps that it owns
  std::uint32_t generation = 0;
};
static_assert(sizeof(ItemRecord) == 16);

// A chunk, the slot of the one that continues its episode, and how many items and windows need it.
struct StoredChunk {
  static constexpr ChunkSlot kNone = ~ChunkSlot{0};
  const PackedChunk* chunk = nullptr;  // whoever holds the record holds a reference
  ChunkSlot next = kNone;
  std::uint32_t references = 0;
};
static_assert(sizeof(StoredChunk) == 16);

// Keeps the chunks that left a table after a cut was made; the table fills it under its lock as
// long as the cut is there.
struct CutKeeper {
  std::vector<PackedPtr> chunks;
  std::shared_ptr<CutKeeper> later;  // once the table is gone: that of the next cut
  std::atomic<bool> done{false};     // the cut is gone
};

// A consistent cut: the records, the chunks, and everything else as bytes.
struct StoreCut {
  CowVector<ItemRecord> items;
  CowVector<StoredChunk> chunks;  // alive while `keeper` is
  std::vector<std::uint8_t> state;
  std::shared_ptr<CutKeeper> keeper;
};

}  // namespace troupe::replay
