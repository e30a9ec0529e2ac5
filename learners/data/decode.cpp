// Chooses the format, keeps the bounds, and turns pictures upright.
#include "learners/data/decode.hpp"

#include <malloc.h>

#include <mutex>
#include <string>
#include <utility>

#include "learners/data/codecs.hpp"

namespace troupe::learners::data {
namespace {

Result<Region> wanted(Extent size, const DecodeOptions& options) {
  if (size.width < 1 || size.height < 1) return fail(ErrorCode::kCorrupt, "it has no pixels");
  if (static_cast<std::int64_t>(size.width) * size.height > options.max_pixels)
    return fail(ErrorCode::kCorrupt, "it says " + std::to_string(size.width) + " x " +
                                         std::to_string(size.height) + " pixels, more than " +
                                         std::to_string(options.max_pixels) + " in all");
  if (!options.choose)
    return Region{0, 0, static_cast<double>(size.width), static_cast<double>(size.height)};
  const auto region = within(options.choose(size.width, size.height), size.width, size.height);
  if (!region) return fail(ErrorCode::kInvalidArgument, "the region is not within its pixels");
  return *region;
}

}  // namespace

void keep_pixel_memory() {
  static std::once_flag begun;
  std::call_once(begun, [] {
    (void)mallopt(M_MMAP_THRESHOLD, 32 << 20);
    (void)mallopt(M_TRIM_THRESHOLD, 64 << 20);
  });
}

Result<Decoded> decode(std::span<const std::uint8_t> bytes, std::string_view name,
                       const DecodeOptions& options) {
  const auto named = [&](Error error) {
    error.message = std::string(name) + ": " + error.message;
    return tl::unexpected<Error>(std::move(error));
  };
  if (options.channels != 1 && options.channels != 3)
    return named({ErrorCode::kInvalidArgument, "pictures are decoded to 1 or 3 channels"});
  const bool jpeg = is_jpeg(bytes);
  if (!jpeg && !is_png(bytes))
    return named({ErrorCode::kCorrupt, bytes.empty() ? "it is empty" : "it is no JPEG and no PNG"});

  const Orientation orientation = jpeg ? orientation_of(bytes) : 1;
  Extent stored;
  const ChooseStored choose = [&](Extent size) -> Result<Region> {
    stored = size;
    return wanted(upright(size, orientation), options).map([&](const Region& region) {
      return to_stored(region, size, orientation);
    });
  };
  auto part = jpeg ? decode_jpeg(bytes, options.channels, options.reduce_to, choose)
                   : decode_png(bytes, options.channels, choose);
  if (!part) return named(part.error());

  const Extent size = upright(stored, orientation);
  const Extent held{part->image.width, part->image.height};
  return Decoded{turn(std::move(part->image), orientation),
                 to_upright(part->region, held, orientation), size.width, size.height};
}

}  // namespace troupe::learners::data
