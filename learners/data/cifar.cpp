// CIFAR-10 and CIFAR-100 in their binary versions.
#include <system_error>
#include <utility>

#include "envs/spec/files.hpp"
#include "envs/spec/fnv.hpp"
#include "learners/data/class_names.hpp"
#include "learners/data/data_set.hpp"

namespace troupe::learners::data {
namespace {

namespace fs = std::filesystem;

constexpr int kSide = 32;
constexpr std::size_t kPlane = kSide * kSide, kPixels = 3 * kPlane;

class Cifar final : public DataSet {
 public:
  Cifar(std::vector<fs::path> files, std::vector<std::vector<std::uint8_t>> bytes, bool hundred,
        std::vector<std::string> classes)
      : files_(std::move(files)),
        bytes_(std::move(bytes)),
        labels_(hundred ? 2 : 1),
        classes_(std::move(classes)) {
    for (const auto& content : bytes_) {
      starts_.push_back(size_);
      size_ += static_cast<std::int64_t>(content.size() / record());
    }
  }

  std::int64_t size() const override { return size_; }
  const std::vector<std::string>& classes() const override { return classes_; }
  std::vector<std::int64_t> file_starts() const override { return starts_; }

  Result<Record> read(std::int64_t index) const override {
    if (index < 0 || index >= size_)
      return fail(ErrorCode::kInvalidArgument,
                  "there is no picture " + std::to_string(index) + " of " + std::to_string(size_));
    std::size_t file = starts_.size() - 1;
    while (starts_[file] > index) --file;
    const auto within = static_cast<std::size_t>(index - starts_[file]);
    const std::uint8_t* from = &bytes_[file][within * record()];
    const std::string name = files_[file].string() + "[" + std::to_string(within) + "]";
    const std::int64_t label = from[labels_ - 1];  // CIFAR-100: coarse, then fine
    if (label >= static_cast<std::int64_t>(classes_.size()))
      return fail(ErrorCode::kCorrupt, name + ": label " + std::to_string(label) + " of " +
                                           std::to_string(classes_.size()) + " classes");
    from += labels_;
    Image image(kSide, kSide, 3);  // from planes to pixels
    for (std::size_t i = 0; i < kPlane; ++i)
      for (std::size_t c = 0; c < 3; ++c) image.pixels[3 * i + c] = from[c * kPlane + i];
    return Record{std::move(image), label, name};
  }

  std::uint64_t fingerprint() const override {
    Fnv1a print;
    for (const auto& bytes : bytes_) {
      print.add(bytes.size());
      for (std::size_t at = 0; at < bytes.size(); at += record())
        print.add(std::uint64_t{bytes[at + labels_ - 1]});
    }
    return print.value();
  }

 private:
  std::size_t record() const { return labels_ + kPixels; }

  std::vector<fs::path> files_;
  std::vector<std::vector<std::uint8_t>> bytes_;  // [file]
  std::size_t labels_;                            // bytes before each picture
  std::vector<std::string> classes_;
  std::vector<std::int64_t> starts_;
  std::int64_t size_ = 0;
};

Result<std::vector<std::string>> class_names(const fs::path& folder, bool hundred) {
  const std::size_t count = hundred ? 100 : 10;
  const fs::path file = folder / (hundred ? "fine_label_names.txt" : "batches.meta.txt");
  std::error_code error;
  if (!fs::exists(file, error)) return numbered_classes(count);
  auto names = read_class_names(file);
  if (names && names->size() != count)
    return fail(ErrorCode::kCorrupt, file.string() + " has " + std::to_string(names->size()) +
                                         " names, not " + std::to_string(count));
  return names;
}

}  // namespace

Result<std::unique_ptr<DataSet>> open_cifar(const std::vector<fs::path>& files, bool hundred) {
  if (files.empty()) return fail(ErrorCode::kInvalidArgument, "CIFAR: no file is named");
  const std::size_t record = (hundred ? 2 : 1) + kPixels;
  std::vector<std::vector<std::uint8_t>> contents;
  for (const fs::path& file : files) {
    auto bytes = read_file(file);
    if (!bytes) return tl::unexpected(bytes.error());
    if (bytes->empty() || bytes->size() % record != 0)
      return fail(ErrorCode::kCorrupt,
                  file.string() + " has " + std::to_string(bytes->size()) +
                      " bytes, which is no multiple of " + std::to_string(record) +
                      ": it is truncated or no CIFAR-" + (hundred ? "100" : "10") + " file");
    contents.push_back(*std::move(bytes));
  }
  auto names = class_names(files.front().parent_path(), hundred);
  if (!names) return tl::unexpected(names.error());
  return std::make_unique<Cifar>(files, std::move(contents), hundred, *std::move(names));
}

}  // namespace troupe::learners::data
