// The only file that knows LZ4 and Zstandard.
#include "replay/compression.hpp"

#include <lz4.h>
#include <zstd.h>

#include <array>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>

namespace troupe::replay {
namespace {

// Higher levels gain a tenth at half the speed and less.
constexpr int kZstdLevel = 1;
// Smaller rows are not worth a block directory.
constexpr std::size_t kPixelRow = 1024;

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

// Contexts are large and costly to make, so each thread keeps its own.
ZSTD_CCtx& compressor() {
  thread_local std::unique_ptr<ZSTD_CCtx, FreeContext> context(ZSTD_createCCtx());
  if (!context) throw std::bad_alloc();
  return *context;
}

ZSTD_DCtx& decompressor() {
  thread_local std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
  if (!context) throw std::bad_alloc();
  return *context;
}

constexpr std::array kNames{"none", "lz4", "zstd"};

}  // namespace

const char* name_of(Compression compression) {
  return kNames.at(static_cast<std::size_t>(compression));
}

std::optional<Compression> compression_of(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (name == kNames[i]) return static_cast<Compression>(i);
  return std::nullopt;
}

Compression compression_for(const Column& column, const ColumnCompression& asked) {
  if (const auto found = asked.find(column.name); found != asked.end()) return found->second;
  return column.dtype == DType::kU8 && column.bytes() >= kPixelRow ? Compression::kLz4
                                                                   : Compression::kNone;
}

void compress(Compression compression, std::span<const std::uint8_t> block,
              std::vector<std::uint8_t>& out) {
  const std::size_t before = out.size();
  std::size_t packed = 0;
  if (compression == Compression::kZstd) {
    out.resize(before + ZSTD_compressBound(block.size()));
    packed = ZSTD_compressCCtx(&compressor(), out.data() + before, out.size() - before,
                               block.data(), block.size(), kZstdLevel);
    if (ZSTD_isError(packed) != 0) throw std::bad_alloc();  // with enough room nothing else fails
  } else if (compression == Compression::kLz4) {
    const int size = static_cast<int>(block.size());
    out.resize(before + static_cast<std::size_t>(LZ4_compressBound(size)));
    packed = static_cast<std::size_t>(LZ4_compress_default(
        reinterpret_cast<const char*>(block.data()), reinterpret_cast<char*>(out.data() + before),
        size, static_cast<int>(out.size() - before)));
  } else {
    out.insert(out.end(), block.begin(), block.end());
    return;
  }
  out.resize(before + packed);
}

bool decompress(Compression compression, std::span<const std::uint8_t> packed,
                std::span<std::uint8_t> block) {
  constexpr auto kMost = static_cast<std::size_t>(std::numeric_limits<int>::max());
  if (compression == Compression::kZstd)
    return ZSTD_decompressDCtx(&decompressor(), block.data(), block.size(), packed.data(),
                               packed.size()) == block.size();
  if (compression == Compression::kLz4)
    return packed.size() <= kMost && block.size() <= kMost &&
           LZ4_decompress_safe(reinterpret_cast<const char*>(packed.data()),
                               reinterpret_cast<char*>(block.data()),
                               static_cast<int>(packed.size()),
                               static_cast<int>(block.size())) == static_cast<int>(block.size());
  return false;
}

}  // namespace troupe::replay
