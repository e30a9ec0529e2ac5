// Pictures made of numbers: for tests, benchmarks and trying a configuration without data.
#include <utility>

#include "envs/spec/fnv.hpp"
#include "envs/spec/random.hpp"
#include "learners/data/class_names.hpp"
#include "learners/data/data_set.hpp"

namespace troupe::learners::data {
namespace {

class Synthetic final : public DataSet {
 public:
  Synthetic(std::int64_t size, std::int64_t classes, int side, std::uint64_t seed)
      : size_(size),
        side_(side),
        seed_(seed),
        classes_(numbered_classes(static_cast<std::size_t>(classes))) {}

  std::int64_t size() const override { return size_; }
  const std::vector<std::string>& classes() const override { return classes_; }

  // Noise over a mean colour and over stripes, both of the class.
  Result<Record> read(std::int64_t index) const override {
    if (index < 0 || index >= size_)
      return fail(ErrorCode::kInvalidArgument,
                  "there is no picture " + std::to_string(index) + " of " + std::to_string(size_));
    const std::int64_t label = index % static_cast<std::int64_t>(classes_.size());
    Random colours(stream_seed(0, "class", static_cast<std::uint64_t>(label)));
    Random noise(stream_seed(seed_, "picture", static_cast<std::uint64_t>(index)));
    int base[3], stripe[3];
    for (int c = 0; c < 3; ++c) {
      base[c] = 48 + static_cast<int>(colours.below(96));
      stripe[c] = static_cast<int>(colours.below(64));
    }
    const int period = 2 + static_cast<int>(colours.below(6));
    const auto phase = static_cast<int>(noise.below(static_cast<std::uint64_t>(period)));
    Image image(side_, side_, 3);
    std::uint8_t* to = image.pixels.data();
    for (int y = 0; y < side_; ++y)
      for (int x = 0; x < side_; ++x)
        for (int c = 0; c < 3; ++c)
          *to++ = static_cast<std::uint8_t>(base[c] + ((x + y + phase) / period % 2) * stripe[c] +
                                            static_cast<int>(noise.below(48)));
    return Record{std::move(image), label, "synthetic[" + std::to_string(index) + "]"};
  }

  std::uint64_t fingerprint() const override {
    Fnv1a print;
    print.add(static_cast<std::uint64_t>(size_));
    print.add(classes_.size());
    print.add(static_cast<std::uint64_t>(side_));
    print.add(seed_);
    return print.value();
  }

 private:
  std::int64_t size_;
  int side_;
  std::uint64_t seed_;
  std::vector<std::string> classes_;
};

}  // namespace

std::unique_ptr<DataSet> make_synthetic(std::int64_t size, std::int64_t classes, int side,
                                        std::uint64_t seed) {
  return std::make_unique<Synthetic>(size, classes, side, seed);
}

}  // namespace troupe::learners::data
