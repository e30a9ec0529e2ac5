// The measurement: fill, insert for a while, sample for a while, copy for a while.
#include "replay/benchmark.hpp"

#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "envs/spec/random.hpp"
#include "replay/table.hpp"

namespace troupe::replay {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kChunkSteps = 64, kPixelChunkSteps = 12, kStack = 3, kFrames = 64;
constexpr int kSide = 84;
constexpr std::size_t kFrameBytes = std::size_t{kSide} * kSide * 3;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Shape {
  Signature signature;
  std::int64_t items = 0;
  std::uint32_t chunk_steps = 0;
  std::uint32_t sequence = 0;  // steps of an item that is a sequence; 0: n-step items
};

Result<Shape> shape_of(const std::string& name) {
  Shape shape{.signature = {{}, {{"action", DType::kF32, {6}}}, 1}};
  if (name == "state") {
    shape.signature.observation = {{"observation", DType::kF32, {17}}};
    shape.items = 100000;
    shape.chunk_steps = kChunkSteps;
  } else if (name == "pixels") {
    shape.signature.observation = {{"pixels", DType::kU8, {84, 84, 3}}};
    shape.sequence = kStack;
    shape.items = 4000;
    shape.chunk_steps = kPixelChunkSteps;
  } else {
    return fail(ErrorCode::kInvalidArgument,
                "there is no shape '" + name + "'; known are state and pixels");
  }
  return shape;
}

// Plays the environment: copies one observation, action and reward a step into chunks of one
// endless episode. The observations take turns.
class Source {
 public:
  Source(const Shape& shape, std::vector<std::uint8_t> observations)
      : shape_(shape),
        observation_bytes_(shape.signature.observation[0].bytes()),
        observations_(std::move(observations)),
        action_(shape.signature.step[0].bytes(), std::uint8_t{0}) {}

  ChunkPtr next() {
    const std::uint32_t steps = shape_.chunk_steps;
    auto chunk = std::make_shared<Chunk>();
    chunk->header = {.sequence = sequence_++, .first_step = first_, .steps = steps, .spec_hash = 1};
    chunk->observation.emplace_back().reserve(steps * observation_bytes_);
    chunk->step.emplace_back().reserve(steps * action_.size());
    chunk->reward.reserve(steps);
    for (std::uint32_t i = 0; i < steps; ++i) {
      const std::size_t shown = (first_ + i) % (observations_.size() / observation_bytes_);
      const auto* one = observations_.data() + shown * observation_bytes_;
      chunk->observation[0].insert(chunk->observation[0].end(), one, one + observation_bytes_);
      chunk->step[0].insert(chunk->step[0].end(), action_.begin(), action_.end());
      chunk->reward.push_back(static_cast<float>(i));
    }
    first_ += steps;
    return chunk;
  }

 private:
  const Shape& shape_;
  const std::size_t observation_bytes_;
  const std::vector<std::uint8_t> observations_, action_;
  std::uint64_t sequence_ = 0;
  std::uint32_t first_ = 0;
};

double measure_inserts(Table& table, Source& source, const Shape& shape, double seconds) {
  std::uint64_t steps = 0;
  const auto start = Clock::now();
  while (since(start) < seconds) {
    table.try_insert(source.next());
    steps += shape.chunk_steps;
  }
  return static_cast<double>(steps) / since(start);
}

Result<double> measure_samples(Table& table, Batch& batch, double seconds) {
  const auto items = static_cast<std::size_t>(batch.items());
  std::uint64_t batches = 0;
  const auto start = Clock::now();
  while (since(start) < seconds) {
    const auto drawn = table.try_sample(items);
    if (!drawn) return tl::unexpected(drawn.error());
    if (auto good = table.gather(*drawn, batch); !good) return tl::unexpected(good.error());
    ++batches;
  }
  return static_cast<double>(batches * items) / since(start);
}

// A volatile read keeps the copy from being removed.
double measure_memcpy(std::size_t bytes, double seconds) {
  const std::vector<std::uint8_t> from(bytes, 1);
  std::vector<std::uint8_t> to(bytes);
  std::uint64_t copies = 0;
  const auto start = Clock::now();
  while (since(start) < seconds) {
    std::memcpy(to.data(), from.data(), bytes);
    [[maybe_unused]] const volatile std::uint8_t last = to[copies % bytes];
    ++copies;
  }
  return static_cast<double>(copies * bytes) / since(start);
}

Result<std::vector<std::uint8_t>> observations_of(const ReplayBenchmarkOptions& options,
                                                  const Shape& shape) {
  const std::size_t bytes = shape.signature.observation[0].bytes();
  if (shape.sequence == 0) return std::vector<std::uint8_t>(bytes, std::uint8_t{1});
  if (options.frames.empty()) return benchmark_frames(kFrames);
  std::ifstream file(options.frames, std::ios::binary);
  if (!file) return fail(ErrorCode::kNotFound, "cannot open " + options.frames.string());
  std::vector<std::uint8_t> frames{std::istreambuf_iterator<char>(file), {}};
  if (frames.empty() || frames.size() % bytes != 0)
    return fail(ErrorCode::kInvalidArgument,
                options.frames.string() + " has " + std::to_string(frames.size()) +
                    " bytes, no number of frames of " + std::to_string(bytes));
  return frames;
}

}  // namespace

std::vector<std::uint8_t> benchmark_frames(std::uint32_t count) {
  std::vector<std::uint8_t> frames;
  frames.reserve(count * kFrameBytes);
  Random random(0);
  constexpr int kShades[3] = {200, 120, 60};
  for (int t = 0; t < static_cast<int>(count); ++t)
    for (int y = 0; y < kSide; ++y)
      for (int x = 0; x < kSide; ++x) {
        const int ground = (x * 8 / (y + 4) + (t + y) / 6) % 2 * 40 + 90;
        const int dx = x - 20 - t % 44, dy = y - 50;
        for (int channel = 0; channel < 3; ++channel) {
          const int picture = (y < 30 ? 180 - y : ground) + 10 * channel;
          const int shown = dx * dx + dy * dy < 120 ? kShades[channel] : picture;
          const int noise = random.uniform() < 0.02 ? 1 : 0;
          frames.push_back(static_cast<std::uint8_t>(shown ^ noise));
        }
      }
  return frames;
}

Result<ReplayBenchmark> benchmark_replay(const ReplayBenchmarkOptions& options) {
  auto shape = shape_of(options.shape);
  if (!shape) return tl::unexpected(shape.error());
  if (options.items > 0) shape->items = options.items;
  if (options.items < 0 || options.batch < 1 || !(options.seconds > 0))
    return fail(ErrorCode::kInvalidArgument,
                "replay benchmark: items, batch and seconds must be positive");
  TableOptions table_options;
  table_options.capacity = shape->items;
  table_options.n_step = options.n_step;
  if (shape->sequence > 0) {
    table_options.items = {.kind = ItemShape::Kind::kSequence, .length = shape->sequence};
    table_options.compression = {{"pixels", options.compression}};
  }
  auto table = Table::create(table_options, shape->signature);
  if (!table) return tl::unexpected(table.error());
  auto observations = observations_of(options, *shape);
  if (!observations) return tl::unexpected(observations.error());
  Source source(*shape, *std::move(observations));
  while ((*table)->statistics().held_items < static_cast<std::uint64_t>(shape->items))
    (*table)->try_insert(source.next());

  ReplayBenchmark result;
  result.inserts_per_second = measure_inserts(**table, source, *shape, options.seconds);
  Batch batch((*table)->batch_columns(), options.batch);
  const auto samples = measure_samples(**table, batch, options.seconds);
  if (!samples) return tl::unexpected(samples.error());
  result.samples_per_second = *samples;
  std::size_t row = 0;
  for (const Column& column : batch.columns()) row += column.bytes();
  result.gather_bytes_per_second = static_cast<double>(row) * *samples;
  result.memcpy_bytes_per_second =
      measure_memcpy(row * static_cast<std::size_t>(options.batch), options.seconds / 4);
  const TableStatistics statistics = (*table)->statistics();
  result.bytes_per_item =
      static_cast<double>(statistics.memory_bytes) / static_cast<double>(statistics.held_items);
  result.raw_bytes_per_item =
      static_cast<double>(statistics.raw_bytes) / static_cast<double>(statistics.held_items);
  return result;
}

}  // namespace troupe::replay
