// The camera's orientation: libexif reads it, this turns pictures and regions by it.
#include <libexif/exif-data.h>

#include <limits>
#include <memory>
#include <utility>

#include "learners/data/codecs.hpp"

namespace troupe::learners::data {
namespace {

bool swaps(Orientation orientation) { return orientation >= 5; }

// Where the point (x, y) of the stored picture lies in the upright one.
std::pair<double, double> turned(double x, double y, Extent stored, Orientation orientation) {
  const double w = stored.width, h = stored.height;
  switch (orientation) {
    case 2:
      return {w - x, y};
    case 3:
      return {w - x, h - y};
    case 4:
      return {x, h - y};
    case 5:
      return {y, x};
    case 6:
      return {h - y, x};
    case 7:
      return {h - y, w - x};
    case 8:
      return {y, w - x};
    default:
      return {x, y};
  }
}

Orientation inverse(Orientation orientation) {
  if (orientation == 6) return 8;
  if (orientation == 8) return 6;
  return orientation;  // the others undo themselves
}

Region between(std::pair<double, double> a, std::pair<double, double> b) {
  const auto [left, right] = std::minmax(a.first, b.first);
  const auto [top, bottom] = std::minmax(a.second, b.second);
  return {left, top, right - left, bottom - top};
}

}  // namespace

Orientation orientation_of(std::span<const std::uint8_t> jpeg) {
  if (jpeg.size() > std::numeric_limits<unsigned>::max()) return 1;
  const std::unique_ptr<ExifData, void (*)(ExifData*)> data(
      exif_data_new_from_data(jpeg.data(), static_cast<unsigned>(jpeg.size())), exif_data_unref);
  if (!data) return 1;
  const ExifEntry* entry = exif_content_get_entry(data->ifd[EXIF_IFD_0], EXIF_TAG_ORIENTATION);
  if (entry == nullptr || entry->format != EXIF_FORMAT_SHORT || entry->size < 2) return 1;
  const int value = exif_get_short(entry->data, exif_data_get_byte_order(data.get()));
  return value >= 1 && value <= 8 ? value : 1;
}

Extent upright(Extent stored, Orientation orientation) {
  return swaps(orientation) ? Extent{stored.height, stored.width} : stored;
}

Region to_upright(const Region& region, Extent stored, Orientation orientation) {
  return between(turned(region.x, region.y, stored, orientation),
                 turned(region.x + region.width, region.y + region.height, stored, orientation));
}

Region to_stored(const Region& region, Extent stored, Orientation orientation) {
  return to_upright(region, upright(stored, orientation), inverse(orientation));
}

Image turn(Image image, Orientation orientation) {
  if (orientation == 1) return image;
  const Extent stored{image.width, image.height};
  const Extent size = upright(stored, orientation);
  Image out(size.width, size.height, image.channels);
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < image.width; ++x) {
      // The middle of a pixel stays the middle of one.
      const auto [u, v] = turned(x + 0.5, y + 0.5, stored, orientation);
      const std::uint8_t* from = image.row(y) + static_cast<std::ptrdiff_t>(x) * image.channels;
      std::uint8_t* to = out.row(static_cast<int>(v)) +
                         static_cast<std::ptrdiff_t>(static_cast<int>(u)) * image.channels;
      for (int c = 0; c < image.channels; ++c) to[c] = from[c];
    }
  return out;
}

}  // namespace troupe::learners::data
