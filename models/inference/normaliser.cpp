// Implements running statistics and their encoding:
//   u32 magic, u32 version, u32 CRC-32C of all that follows, u64 count, u32 size, f64 mean[], f64
//   squares[]
#include "models/inference/normaliser.hpp"

#include <algorithm>
#include <cmath>

#include "models/inference/bytes.hpp"
#include "models/inference/checksum.hpp"

namespace troupe::models {
namespace {

constexpr std::uint32_t kMagic = 0x4e505254;  // "TRPN"
constexpr std::uint32_t kFormat = 1;
constexpr std::size_t kHeaderBytes = 12;
constexpr float kEpsilon = 1e-8F;
constexpr float kClip = 10.0F;

tl::unexpected<Error> corrupt(const std::string& what) {
  return fail(ErrorCode::kCorrupt, "The observation statistics cannot be used: " + what + ".");
}

}  // namespace

RunningStatistics::RunningStatistics(std::int64_t size)
    : mean_(static_cast<std::size_t>(size)), squares_(static_cast<std::size_t>(size)) {}

std::vector<double> RunningStatistics::variance() const {
  if (count_ < 2) return std::vector<double>(mean_.size(), 1.0);
  std::vector<double> result(squares_);
  for (double& value : result) value /= static_cast<double>(count_);
  return result;
}

Result<void> RunningStatistics::add(std::span<const float> observation) {
  if (observation.size() != mean_.size())
    return fail(ErrorCode::kInvalidArgument,
                "An observation of " + std::to_string(observation.size()) +
                    " values was given to statistics of " + std::to_string(mean_.size()) + ".");
  for (std::size_t i = 0; i < observation.size(); ++i)
    if (!std::isfinite(observation[i]))
      return fail(ErrorCode::kNotFinite,
                  "Element " + std::to_string(i) + " of an observation is not finite.");
  ++count_;
  for (std::size_t i = 0; i < mean_.size(); ++i) {
    const double value = observation[i];
    const double difference = value - mean_[i];
    mean_[i] += difference / static_cast<double>(count_);
    squares_[i] += difference * (value - mean_[i]);
  }
  return {};
}

Result<void> RunningStatistics::merge(const RunningStatistics& other) {
  if (other.size() != size())
    return fail(ErrorCode::kInvalidArgument,
                "Observation statistics of " + std::to_string(other.size()) +
                    " elements cannot be merged into " + std::to_string(size()) + ".");
  if (other.count_ == 0) return {};
  const double mine = static_cast<double>(count_), theirs = static_cast<double>(other.count_);
  const double total = mine + theirs;
  for (std::size_t i = 0; i < mean_.size(); ++i) {
    const double difference = other.mean_[i] - mean_[i];
    mean_[i] += difference * (theirs / total);
    squares_[i] += other.squares_[i] + difference * difference * (mine * theirs / total);
  }
  count_ += other.count_;
  return {};
}

void RunningStatistics::clear() { *this = RunningStatistics(size()); }

std::vector<std::uint8_t> RunningStatistics::encode() const {
  ByteWriter writer;
  writer.put(kMagic);
  writer.put(kFormat);
  writer.put(std::uint32_t{0});
  writer.put(count_);
  writer.put(static_cast<std::uint32_t>(mean_.size()));
  writer.put_values(std::span<const double>(mean_));
  writer.put_values(std::span<const double>(squares_));
  std::vector<std::uint8_t> bytes = std::move(writer.bytes());
  const std::uint32_t crc = checksum(std::span(bytes).subspan(kHeaderBytes));
  std::memcpy(bytes.data() + 8, &crc, sizeof crc);
  return bytes;
}

Result<RunningStatistics> RunningStatistics::decode(std::span<const std::uint8_t> bytes) {
  ByteReader reader(bytes);
  std::uint32_t magic = 0, format = 0, crc = 0, size = 0;
  if (!reader.take(magic) || !reader.take(format) || !reader.take(crc))
    return corrupt("they are too short for a header");
  if (magic != kMagic || format != kFormat) return corrupt("they are of an unknown format");
  if (checksum(bytes.subspan(kHeaderBytes)) != crc) return corrupt("the checksum does not match");
  RunningStatistics result;
  if (!reader.take(result.count_) || !reader.take(size) ||
      !reader.take_values(size, result.mean_) || !reader.take_values(size, result.squares_) ||
      !reader.complete())
    return corrupt("their length does not fit their size");
  const auto bad_mean = [](double value) { return !std::isfinite(value); };
  const auto bad_square = [](double value) { return !std::isfinite(value) || value < 0; };
  if (std::any_of(result.mean_.begin(), result.mean_.end(), bad_mean) ||
      std::any_of(result.squares_.begin(), result.squares_.end(), bad_square))
    return corrupt("a value is not finite or a variance is negative");
  return result;
}

ObservationScale::ObservationScale(std::span<const float> mean, std::span<const float> variance)
    : mean_(mean.begin(), mean.end()), inverse_deviation_(variance.begin(), variance.end()) {
  for (float& value : inverse_deviation_)
    value = 1.0F / std::sqrt(std::max(value, 0.0F) + kEpsilon);
}

void ObservationScale::apply(std::span<const float> observations, std::span<float> scaled) const {
  const std::size_t size = mean_.size();
  for (std::size_t row = 0; row + size <= observations.size(); row += size)
    for (std::size_t i = 0; i < size; ++i)
      scaled[row + i] =
          std::clamp((observations[row + i] - mean_[i]) * inverse_deviation_[i], -kClip, kClip);
}

}  // namespace troupe::models
