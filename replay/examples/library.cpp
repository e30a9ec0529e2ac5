// The replay as a library: one table, a writer, a reader, no actors and no other process.
#include <chrono>
#include <cstdio>
#include <cstring>

#include "replay/table.hpp"

using namespace troupe;
using namespace troupe::replay;

// One episode of `steps` steps, whose observation is the number of the step.
ChunkPtr episode(std::uint64_t number, std::uint32_t steps) {
  auto chunk = std::make_shared<Chunk>();
  chunk->header = {
      .sequence = number, .episode = number, .steps = steps, .end = EpisodeEnd::kTerminated};
  chunk->observation = {std::vector<std::uint8_t>((steps + 1) * sizeof(float))};
  chunk->step = {std::vector<std::uint8_t>(steps * sizeof(float))};
  for (std::uint32_t i = 0; i <= steps; ++i) {
    const auto value = static_cast<float>(i);
    std::memcpy(chunk->observation[0].data() + i * sizeof(float), &value, sizeof(float));
  }
  chunk->reward.assign(steps, 1.0F);
  return chunk;
}

int main() {
  const Signature signature{.observation = {{"observation", DType::kF32, {1}}},
                            .step = {{"action", DType::kF32, {1}}}};
  TableOptions options;
  options.capacity = 1000;
  options.n_step = 3;
  auto table = Table::create(options, signature).value();
  for (std::uint64_t i = 0; i < 20; ++i)
    (void)table->insert(episode(i, 50), std::chrono::seconds{1});
  const auto items = table->sample(256, std::chrono::seconds{1});
  Batch batch(table->batch_columns(), 256);
  if (!items || !table->gather(*items, batch)) return 1;
  std::printf("%g and, at most 3 steps later, %g: reward %g\n", batch.floats("observation")[0],
              batch.floats("next_observation")[0], batch.floats("reward")[0]);
  return table->statistics().held_items == 1000 ? 0 : 1;
}
