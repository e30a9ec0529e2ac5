// Implements the spec's sizes and hash.
#include "envs/spec/spec.hpp"

#include <array>
#include <bit>
#include <functional>
#include <numeric>

#include "envs/spec/fnv.hpp"

namespace troupe {
namespace {

struct TypeInfo {
  std::size_t size;
  const char* name;
};
constexpr std::array<TypeInfo, 7> kTypes{
    {{4, "f32"}, {8, "f64"}, {1, "u8"}, {4, "i32"}, {8, "i64"}, {4, "u32"}, {8, "u64"}}};

}  // namespace

std::size_t size_of(DType type) { return kTypes.at(static_cast<std::size_t>(type)).size; }
const char* name_of(DType type) { return kTypes.at(static_cast<std::size_t>(type)).name; }

std::int64_t Column::elements() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>{});
}

std::size_t Column::bytes() const { return static_cast<std::size_t>(elements()) * size_of(dtype); }

std::int64_t EnvSpec::observation_size() const {
  std::int64_t total = 0;
  for (const Column& column : observations)
    if (column.dtype != DType::kU8) total += column.elements();
  return total;
}

std::uint64_t hash_of(const EnvSpec& spec) {
  Fnv1a hash;
  hash.add(spec.name);
  for (const Column& column : spec.observations) {
    hash.add(column.name);
    hash.add(static_cast<std::uint64_t>(column.dtype));
    for (const std::int64_t extent : column.shape) hash.add(static_cast<std::uint64_t>(extent));
  }
  hash.add(static_cast<std::uint64_t>(spec.action.discrete));
  hash.add(static_cast<std::uint64_t>(spec.action.choices));
  for (const double bound : spec.action.low) hash.add(std::bit_cast<std::uint64_t>(bound));
  for (const double bound : spec.action.high) hash.add(std::bit_cast<std::uint64_t>(bound));
  hash.add(static_cast<std::uint64_t>(spec.episode_steps));
  return hash.value();
}

}  // namespace troupe
