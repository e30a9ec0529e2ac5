// Builds n-step items from raw steps as they arrive: the open end of every episode that is being
// written, and which chunks have been seen. Pure and deterministic; its owner is a table, which
// calls it under its lock.
//
// For step t of an episode that ends after L steps the item is (s_t, a_t, R, discount, s_{t+k})
// with
//   k = min(n, L - t)    R = sum_{i<k} gamma^i r_{t+i}    discount = gamma^k, or 0 if the last of
//   the k
// steps terminated the episode (Sutton and Barto, Reinforcement Learning, 2nd ed., 7.1). A
// truncated episode bootstraps from its final observation. An item never holds steps of two
// episodes.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "replay/bytes.hpp"
#include "replay/signature.hpp"

namespace troupe::replay {

// A table's own number of a stored chunk.
using ChunkSlot = std::uint32_t;

struct BuiltItem {
  ChunkSlot chunk = 0;  // holds s_t and a_t ...
  std::uint32_t row =
      0;  // ... in this row; s_{t+k} is k rows further on, in later chunks if need be
  std::uint32_t steps = 0;  // k
  bool terminal = false;    // discount 0
  float reward = 0;         // R, summed in double
};

class ItemBuilder {
 public:
  // n_step >= 1, 0 <= discount <= 1.
  ItemBuilder(std::uint32_t n_step, double discount);

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
    std::uint64_t dropped_steps = 0;  // steps of broken windows: they never become items
    bool continues = false;           // the chunk follows `previous` without a gap
    ChunkSlot previous = 0;
    void clear();
  };
  // Takes a chunk whose verdict is kNew; the builder holds `slot` until it is released. A chunk
  // that does not continue its environment's open window (gap, new episode, new incarnation) drops
  // that window. O(steps x n).
  void add(const ChunkPtr& chunk, ChunkSlot slot, Addition& out);
  // Drops the open windows of a worker that will not come back.
  void abandon(std::uint32_t worker, Addition& out);

  std::uint64_t pending_steps() const { return pending_steps_; }  // accepted, in no item yet
  std::size_t open_windows() const { return windows_.size(); }
  std::vector<ChunkSlot> held_chunks() const;

  // Everything: marks and windows. load needs the stored chunks by slot, each as what continues the
  // chunk in slot `before` (kNoChunk: that does not matter); nullptr: there is no such chunk.
  // False, with the builder unusable, when the bytes contradict them.
  static constexpr ChunkSlot kNoChunk = ~ChunkSlot{0};
  using Find = std::function<ChunkPtr(ChunkSlot slot, ChunkSlot before)>;
  void save(ByteWriter& out) const;
  bool load(ByteReader& in, const Find& find);

  std::uint32_t n_step() const { return n_step_; }
  double discount() const { return discount_; }

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
  struct OpenChunk {
    ChunkSlot slot = 0;
    ChunkPtr chunk;
  };
  // The end of an episode whose last items wait for later steps.
  struct Window {
    std::uint64_t episode = 0;
    std::uint32_t next_step = 0;   // the step that continues the episode
    std::uint32_t first_open = 0;  // the first step that is in no item
    std::deque<OpenChunk> chunks;  // from the one that holds first_open on
  };
  using Stream = std::pair<std::uint32_t, std::uint32_t>;  // worker, environment

  static bool continues(const Window& window, const ChunkHeader& header);
  bool belongs(const ChunkHeader& header, const Stream& stream, const Window& window) const;
  std::uint32_t build_limit(std::uint32_t first_open, const ChunkHeader& header) const;
  void drop(const Window& window, Addition& out);
  void mark(const ChunkHeader& header, Addition& out);
  void build(Window& window, const ChunkHeader& last, Addition& out);

  std::uint32_t n_step_;
  double discount_;
  std::map<std::uint32_t, Seen> seen_;
  std::map<Stream, Window> windows_;
  std::uint64_t pending_steps_ = 0;
  std::vector<float> rewards_;  // scratch of build: rewards of the open steps
};

}  // namespace troupe::replay
