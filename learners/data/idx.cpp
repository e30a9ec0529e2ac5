// The idx format of MNIST and its successors.
#include <zlib.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "envs/spec/fnv.hpp"
#include "learners/data/class_names.hpp"
#include "learners/data/data_set.hpp"

namespace troupe::learners::data {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxBytes = std::size_t{1} << 32;  // of one file, unpacked

// gzread passes plain files through unchanged.
Result<std::vector<std::uint8_t>> read_unpacked(const fs::path& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) return fail(ErrorCode::kNotFound, path.string() + " cannot be opened");
  std::vector<std::uint8_t> bytes;
  constexpr unsigned kStep = 1U << 20;
  while (true) {
    const std::size_t before = bytes.size();
    if (before > kMaxBytes)
      return fail(ErrorCode::kCorrupt, path.string() + " has more than 4 GiB when unpacked");
    bytes.resize(before + kStep);
    const int got = gzread(file.get(), bytes.data() + before, kStep);
    int code = Z_OK;
    const char* message = gzerror(file.get(), &code);
    if (got < 0 || (code != Z_OK && code != Z_STREAM_END))
      return fail(ErrorCode::kCorrupt, path.string() + ": " + message);
    bytes.resize(before + static_cast<std::size_t>(got));
    if (got == 0) return bytes;
  }
}

std::uint32_t big_endian(const std::uint8_t* at) {
  return static_cast<std::uint32_t>(at[0]) << 24 | static_cast<std::uint32_t>(at[1]) << 16 |
         static_cast<std::uint32_t>(at[2]) << 8 | at[3];
}

// The extents of a file of unsigned bytes with so many dimensions.
Result<std::vector<std::uint32_t>> extents_of(const std::vector<std::uint8_t>& bytes,
                                              std::size_t rank, const fs::path& path) {
  const auto corrupt = [&](const std::string& what) {
    return fail(ErrorCode::kCorrupt, path.string() + ": " + what);
  };
  const std::size_t header = 4 + 4 * rank;
  if (bytes.size() < header || bytes[0] != 0 || bytes[1] != 0 || bytes[2] != 8 || bytes[3] != rank)
    return corrupt("it is no idx file of unsigned bytes with " + std::to_string(rank) +
                   " dimensions");
  std::vector<std::uint32_t> extents;
  std::uint64_t total = 1;
  for (std::size_t i = 0; i < rank; ++i) {
    extents.push_back(big_endian(&bytes[4 + 4 * i]));
    if (extents.back() == 0 || extents.back() > INT32_MAX || extents.back() > kMaxBytes / total)
      return corrupt("an extent is 0 or too large");
    total *= extents.back();
  }
  if (bytes.size() - header != total)
    return corrupt("it should hold " + std::to_string(total) + " bytes but holds " +
                   std::to_string(bytes.size() - header));
  return extents;
}

class Idx final : public DataSet {
 public:
  Idx(std::string name, std::vector<std::uint8_t> pictures, std::vector<std::uint8_t> labels,
      int width, int height, std::vector<std::string> classes)
      : name_(std::move(name)),
        pictures_(std::move(pictures)),
        labels_(std::move(labels)),
        width_(width),
        height_(height),
        classes_(std::move(classes)) {}

  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()) - kLabels; }
  const std::vector<std::string>& classes() const override { return classes_; }
  int channels() const override { return 1; }

  Result<Record> read(std::int64_t index) const override {
    if (index < 0 || index >= size())
      return fail(ErrorCode::kInvalidArgument,
                  "there is no picture " + std::to_string(index) + " of " + std::to_string(size()));
    Image image(width_, height_, 1);
    std::copy_n(
        pictures_.begin() + kPictures + index * static_cast<std::int64_t>(image.pixels.size()),
        image.pixels.size(), image.pixels.begin());
    return Record{std::move(image), labels_[static_cast<std::size_t>(kLabels + index)],
                  name_ + "[" + std::to_string(index) + "]"};
  }

  std::uint64_t fingerprint() const override {
    Fnv1a print;
    print.add(pictures_.size());
    for (std::size_t i = kLabels; i < labels_.size(); ++i) print.add(std::uint64_t{labels_[i]});
    return print.value();
  }

  static constexpr std::int64_t kPictures = 16, kLabels = 8;  // bytes of the headers

 private:
  std::string name_;
  std::vector<std::uint8_t> pictures_, labels_;  // the files
  int width_, height_;
  std::vector<std::string> classes_;
};

}  // namespace

Result<std::unique_ptr<DataSet>> open_idx(const fs::path& pictures, const fs::path& labels,
                                          std::vector<std::string> classes) {
  auto pixels = read_unpacked(pictures);
  if (!pixels) return tl::unexpected(pixels.error());
  auto numbers = read_unpacked(labels);
  if (!numbers) return tl::unexpected(numbers.error());
  const auto shape = extents_of(*pixels, 3, pictures);
  if (!shape) return tl::unexpected(shape.error());
  const auto count = extents_of(*numbers, 1, labels);
  if (!count) return tl::unexpected(count.error());
  if ((*shape)[0] != (*count)[0])
    return fail(ErrorCode::kCorrupt, pictures.string() + " has " + std::to_string((*shape)[0]) +
                                         " pictures but " + labels.string() + " has " +
                                         std::to_string((*count)[0]) + " labels");
  const std::size_t highest = *std::max_element(numbers->begin() + Idx::kLabels, numbers->end());
  if (classes.empty()) classes = numbered_classes(highest + 1);
  if (highest >= classes.size())
    return fail(ErrorCode::kCorrupt, labels.string() + " has a label " + std::to_string(highest) +
                                         " but there are " + std::to_string(classes.size()) +
                                         " classes");
  return std::make_unique<Idx>(pictures.string(), *std::move(pixels), *std::move(numbers),
                               static_cast<int>((*shape)[2]), static_cast<int>((*shape)[1]),
                               std::move(classes));
}

}  // namespace troupe::learners::data
