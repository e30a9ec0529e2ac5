// Builds items from raw steps as they arrive: the open end of every episode that is being written,
// and which chunks have been seen. Pure and deterministic; its owner is a table, which calls it
// under its lock.
//
// An n-step item: for step t of an episode that ends after L steps the item is (s_t, a_t, R,
// discount, s_{t+k}) with
//   k = min(n, L - t)    R = sum_{i<k} gamma^i r_{t+i}    discount = gamma^k, or 0 if the last of
//   the k
// steps terminated the episode (Sutton and Barto, Reinforcement Learning, 2nd ed., 7.1). A
// truncated episode bootstraps from its final observation. An item never holds steps of two
// episodes, unless sequences across episodes are asked for (replay/item_shape.hpp).
//
// With frame stacks an item also needs the frames before its first step, as far as the episode has
// them. Where they were never seen, after a gap, no item begins: those steps are dropped.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "replay/bytes.hpp"
#include "replay/item_shape.hpp"
#include "replay/packed_chunk.hpp"
#include "replay/signature.hpp"

namespace troupe::replay {

// A table's own number of a stored chunk.
using ChunkSlot = std::uint32_t;

struct BuiltItem {
  ChunkSlot chunk = 0;      // holds the first row that is needed ...
  std::uint32_t row = 0;    // ... here; the others, to s_{t+k}, follow, in later chunks if need be
  std::uint32_t lead = 0;   // rows from there to the first step, s_t; 0 without frame stacks
  std::uint32_t steps = 0;  // k
  // Steps that this item stands for in the ledger: 1 of an n-step item, else those that are in no
  // earlier item.
  std::uint32_t owned = 1;
  bool terminal = false;  // n-step: discount 0
  float reward = 0;       // n-step: R, summed in double
};

class ItemBuilder {
 public:
  // `shape` has passed check_item_shape; 0 <= discount <= 1; `lead` as of Signature::lead.
  ItemBuilder(const ItemShape& shape, double discount, std::uint32_t lead = 0);

  // kStale: from an incarnation of a worker that a newer one has replaced.
  enum class Verdict { kNew, kDuplicate, kStale };
  // Whether (worker, incarnation, sequence) was seen before. Chunks may come in any order within
  // kSequenceWindow sequences; older ones count as duplicates.
  Verdict judge(const ChunkHeader& header) const;
  static constexpr std::uint64_t kSequenceWindow = 1024;

  // Items that add would complete. O(log streams).
  std::uint64_t forecast(const ChunkHeader& header) const;

  struct Addition {
    std::vector<BuiltItem> items;     // in the order of their steps
    std::vector<ChunkSlot> released;  // chunks that no open window needs any more (each held once)
    std::uint64_t dropped_steps = 0;  // that never become part of an item
    bool continues = false;           // the chunk follows `previous` without a gap
    ChunkSlot previous = 0;
    void clear();
  };
  // Takes a chunk whose verdict is kNew; the builder holds `slot` until it is released. A chunk
  // that does not continue its environment's open window (gap, new episode, new incarnation) drops
  // that window. O(steps x n) for n-step items, else O(steps).
  void add(const PackedPtr& chunk, ChunkSlot slot, Addition& out);
  // Drops the open windows of a worker that will not come back.
  void abandon(std::uint32_t worker, Addition& out);

  std::uint64_t pending_steps() const { return pending_steps_; }  // accepted, in no item yet
  std::size_t open_windows() const { return windows_.size(); }
  std::vector<ChunkSlot> held_chunks() const;
  std::uint64_t memory_bytes() const;  // of marks and windows, about

  // Everything: marks and windows. load needs the stored chunks by slot, each as what continues the
  // chunk in slot `before` (kNoChunk: that does not matter); nullptr: there is no such chunk.
  // False, with the builder unusable, when the bytes contradict them.
  static constexpr ChunkSlot kNoChunk = ~ChunkSlot{0};
  using Find = std::function<PackedPtr(ChunkSlot slot, ChunkSlot before)>;
  void save(ByteWriter& out) const;
  bool load(ByteReader& in, const Find& find);

  const ItemShape& shape() const { return shape_; }
  double discount() const { return discount_; }
  std::uint32_t lead() const { return lead_; }

 private:
  // What was seen of a worker's newest incarnation. Bit (s mod window) says whether s was seen, for
  // the window that ends with `newest`.
  struct Seen {
    std::uint32_t incarnation = 0;
    bool any = false;
    std::uint64_t newest = 0;
    std::array<std::uint64_t, kSequenceWindow / 64> bits{};

    bool contains(std::uint64_t sequence) const;
    void insert(std::uint64_t sequence);
  };
  // Positions count the steps of a window; the first is that of its first step in the episode.
  struct OpenChunk {
    ChunkSlot slot = 0;
    PackedPtr chunk;
    std::uint64_t first = 0;  // position of its first step
    std::uint64_t end() const { return first + chunk->steps(); }
  };
  struct Progress {
    std::uint64_t origin = 0;     // position of the window's first step
    std::uint64_t end = 0;        // ... after its last one
    std::uint64_t next_item = 0;  // where the next item begins
    std::uint64_t owned = 0;      // steps below belong to an item or were dropped
  };
  // The end of an episode whose last items wait for later steps.
  struct Window {
    std::uint64_t episode = 0;
    std::uint32_t next_step = 0;  // the step that continues the episode
    bool ended = false;           // the next chunk begins an episode (across episodes only)
    Progress progress;
    std::deque<OpenChunk> chunks;  // from the one that holds next_item, and its lead, on
  };
  using Stream = std::pair<std::uint32_t, std::uint32_t>;  // worker, environment

  bool continues(const Window& window, const ChunkHeader& header) const;
  // Moves on by the chunk's steps; calls emit(position, steps, owned) for each item that they
  // complete. Returns the steps that are dropped.
  template <class Emit>
  std::uint64_t advance(Progress& progress, const ChunkHeader& header, Emit emit) const;
  bool belongs(const ChunkHeader& header, const Stream& stream) const;
  // The first position that the next item may need.
  std::uint64_t first_needed(const Progress& progress) const {
    return progress.next_item -
           std::min<std::uint64_t>(lead_, progress.next_item - progress.origin);
  }
  void drop(const Window& window, Addition& out);
  void mark(const ChunkHeader& header, Addition& out);
  void build(Window& window, const ChunkHeader& last, Addition& out);
  void add_return(BuiltItem& item, const Window& window, const ChunkHeader& last,
                  std::uint64_t position) const;
  bool load_chunks(Window& window, const Stream& stream, const std::vector<ChunkSlot>& slots,
                   const Find& find) const;

  ItemShape shape_;
  double discount_;
  std::uint32_t lead_;
  std::map<std::uint32_t, Seen> seen_;
  std::map<Stream, Window> windows_;
  std::uint64_t pending_steps_ = 0;
  std::vector<float> rewards_;  // scratch of build: rewards of the open steps, n-step only
};

}  // namespace troupe::replay
