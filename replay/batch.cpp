// Lays out a batch's columns in one allocation.
#include "replay/batch.hpp"

#include <cassert>
#include <memory>
#include <utility>

namespace troupe::replay {
namespace {
constexpr std::size_t kAlignment = 64;
constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}
}  // namespace

Batch::Batch(std::vector<Column> columns, std::int64_t items)
    : Batch(std::move(columns), items, {}) {
  const std::size_t total = bytes_of(columns_, items);
  storage_.resize(total + kAlignment);
  void* first = storage_.data();
  std::size_t space = storage_.size();
  base_ = static_cast<std::uint8_t*>(std::align(kAlignment, total, first, space));
}

Batch::Batch(std::vector<Column> columns, std::int64_t items, std::span<std::uint8_t> memory)
    : keys(static_cast<std::size_t>(items)),
      versions(static_cast<std::size_t>(items)),
      columns_(std::move(columns)),
      base_(memory.data()),
      items_(items) {
  std::size_t total = 0;
  for (const Column& column : columns_) {
    offsets_.push_back(total);
    total += aligned(column.bytes() * static_cast<std::size_t>(items));
  }
}

std::size_t Batch::bytes_of(const std::vector<Column>& columns, std::int64_t items) {
  std::size_t total = 0;
  for (const Column& column : columns)
    total += aligned(column.bytes() * static_cast<std::size_t>(items));
  return total;
}

int Batch::find(std::string_view name) const {
  for (std::size_t i = 0; i < columns_.size(); ++i)
    if (columns_[i].name == name) return static_cast<int>(i);
  return -1;
}

std::span<std::uint8_t> Batch::bytes(int column) {
  const auto index = static_cast<std::size_t>(column);
  return {base_ + offsets_[index], columns_[index].bytes() * static_cast<std::size_t>(items_)};
}

std::span<const std::uint8_t> Batch::bytes(int column) const {
  return const_cast<Batch*>(this)->bytes(column);
}

std::span<float> Batch::floats(std::string_view name) {
  const int column = find(name);
  if (column < 0) return {};
  assert(columns_[static_cast<std::size_t>(column)].dtype == DType::kF32);
  const auto raw = bytes(column);
  return {reinterpret_cast<float*>(raw.data()), raw.size() / sizeof(float)};
}

std::span<const float> Batch::floats(std::string_view name) const {
  return const_cast<Batch*>(this)->floats(name);
}

}  // namespace troupe::replay
