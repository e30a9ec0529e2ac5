// Two passes of fixed-point dot products, horizontal first, as in Pillow's Resample.c: 8-bit
// intermediate, coefficients rounded to 22 bits.
#include "learners/data/resize.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#if defined(__SSE4_1__)
#include <immintrin.h>
#endif

namespace troupe::learners::data {
namespace {

constexpr int kPrecision = 32 - 8 - 2;

// For every output position: which input positions it is made of, and their weights.
struct Filter {
  int taps = 0;                       // of each output, at most
  std::vector<int> first, count;      // [outputs]
  std::vector<std::int32_t> weights;  // [outputs][taps]
};

Filter make_filter(int inputs, double begin, double end, int outputs) {
  const double scale = (end - begin) / outputs;
  const double stretch = std::max(scale, 1.0);
  Filter filter;
  filter.taps = static_cast<int>(std::ceil(stretch)) * 2 + 1;
  filter.weights.assign(static_cast<std::size_t>(outputs) * filter.taps, 0);
  std::vector<double> exact(filter.taps);
  for (int i = 0; i < outputs; ++i) {
    const double centre = begin + (i + 0.5) * scale;
    const int low = std::max(0, static_cast<int>(std::floor(centre - stretch + 0.5)));
    const int high = std::min(inputs, static_cast<int>(std::floor(centre + stretch + 0.5)));
    double total = 0;
    for (int x = low; x < high; ++x) {
      const double distance = std::abs((x - centre + 0.5) / stretch);
      total += exact[x - low] = distance < 1 ? 1 - distance : 0;
    }
    for (int x = low; x < high; ++x) {
      const double weight = total == 0 ? 0 : exact[x - low] / total * (1 << kPrecision);
      filter.weights[static_cast<std::size_t>(i) * filter.taps + (x - low)] =
          static_cast<std::int32_t>(std::floor(weight + 0.5));
    }
    filter.first.push_back(low);
    filter.count.push_back(high - low);
  }
  return filter;
}

std::uint8_t rounded(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> kPrecision, 0, 255));
}

template <int Channels>
void horizontal_row(const std::uint8_t* in, const Filter& filter, int begin, int end,
                    std::uint8_t* out) {
  for (int x = begin; x < end; ++x) {
    const std::int32_t* weights = &filter.weights[static_cast<std::size_t>(x) * filter.taps];
    const std::uint8_t* from = in + static_cast<std::size_t>(filter.first[x]) * Channels;
    std::int32_t sums[Channels];
    for (std::int32_t& sum : sums) sum = 1 << (kPrecision - 1);
    for (int tap = 0; tap < filter.count[x]; ++tap)
      for (int c = 0; c < Channels; ++c) sums[c] += from[tap * Channels + c] * weights[tap];
    for (int c = 0; c < Channels; ++c) out[x * Channels + c] = rounded(sums[c]);
  }
}

// The same of RGB, a pixel at a time in one register whose fourth number nobody wants; outputs that
// would read beyond the row are left to the above.
void horizontal_rgb(const std::uint8_t* in, int inputs, const Filter& filter, int outputs,
                    std::uint8_t* out) {
  int x = 0;
#if defined(__SSE4_1__)
  for (; x < outputs && filter.first[x] + filter.count[x] < inputs; ++x) {
    const std::int32_t* weights = &filter.weights[static_cast<std::size_t>(x) * filter.taps];
    const std::uint8_t* from = in + static_cast<std::size_t>(filter.first[x]) * 3;
    __m128i sums = _mm_set1_epi32(1 << (kPrecision - 1));
    for (int tap = 0; tap < filter.count[x]; ++tap, from += 3) {
      std::int32_t pixel = 0;
      std::memcpy(&pixel, from, sizeof pixel);
      sums = _mm_add_epi32(sums, _mm_mullo_epi32(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(pixel)),
                                                 _mm_set1_epi32(weights[tap])));
    }
    const __m128i words = _mm_packus_epi32(_mm_srai_epi32(sums, kPrecision), sums);
    const std::int32_t bytes = _mm_cvtsi128_si32(_mm_packus_epi16(words, words));
    std::memcpy(out + static_cast<std::ptrdiff_t>(x) * 3, &bytes, 3);
  }
#endif
  horizontal_row<3>(in, filter, x, outputs, out);
}

void horizontal_row(const Image& image, int y, const Filter& filter, int outputs,
                    std::uint8_t* out) {
  switch (image.channels) {
    case 1:
      return horizontal_row<1>(image.row(y), filter, 0, outputs, out);
    case 3:
      return horizontal_rgb(image.row(y), image.width, filter, outputs, out);
    default:
      return horizontal_row<4>(image.row(y), filter, 0, outputs, out);
  }
}

// Sums whole rows, so that the compiler can take many columns at once.
void vertical_row(const Image& in, int first, int taps, const std::int32_t* weights,
                  std::vector<std::int32_t>& sums, std::uint8_t* out) {
  const std::size_t width = in.stride();
  std::fill(sums.begin(), sums.end(), 1 << (kPrecision - 1));
  for (int tap = 0; tap < taps; ++tap) {
    const std::uint8_t* row = in.row(first + tap);
    const std::int32_t weight = weights[tap];
    for (std::size_t i = 0; i < width; ++i) sums[i] += row[i] * weight;
  }
  for (std::size_t i = 0; i < width; ++i) out[i] = rounded(sums[i]);
}

}  // namespace

Result<Image> resize(const Image& image, const Region& wanted, int width, int height) {
  if (image.channels != 1 && image.channels != 3 && image.channels != 4)
    return fail(ErrorCode::kInvalidArgument,
                "a picture with " + std::to_string(image.channels) + " channels cannot be resized");
  const auto region = within(wanted, image.width, image.height);
  if (width < 1 || height < 1 || !region)
    return fail(ErrorCode::kInvalidArgument, "the region to resize is not within the picture of " +
                                                 std::to_string(image.width) + " x " +
                                                 std::to_string(image.height));
  const Filter across = make_filter(image.width, region->x, region->x + region->width, width);
  const Filter down = make_filter(image.height, region->y, region->y + region->height, height);

  // The rows that the second pass reads.
  const int top = down.first.front();
  const int bottom = down.first.back() + down.count.back();
  Image narrow(width, bottom - top, image.channels);
  for (int y = top; y < bottom; ++y) horizontal_row(image, y, across, width, narrow.row(y - top));

  Image out(width, height, image.channels);
  std::vector<std::int32_t> sums(out.stride());
  for (int y = 0; y < height; ++y)
    vertical_row(narrow, down.first[y] - top, down.count[y],
                 &down.weights[static_cast<std::size_t>(y) * down.taps], sums, out.row(y));
  return out;
}

}  // namespace troupe::learners::data
