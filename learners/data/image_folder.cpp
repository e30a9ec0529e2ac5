// A folder of class folders of pictures.
#include <algorithm>
#include <cctype>
#include <system_error>
#include <utility>

#include "envs/spec/files.hpp"
#include "envs/spec/fnv.hpp"
#include "learners/data/data_set.hpp"

namespace troupe::learners::data {
namespace {

namespace fs = std::filesystem;

bool is_picture(const fs::path& path) {
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

class ImageFolder final : public DataSet {
 public:
  struct File {
    fs::path path;  // below the folder
    std::int64_t label;
  };

  ImageFolder(fs::path folder, std::vector<std::string> classes, std::vector<File> files)
      : folder_(std::move(folder)), classes_(std::move(classes)), files_(std::move(files)) {}

  std::int64_t size() const override { return static_cast<std::int64_t>(files_.size()); }
  const std::vector<std::string>& classes() const override { return classes_; }

  Result<Record> read(std::int64_t index) const override {
    if (index < 0 || index >= size())
      return fail(ErrorCode::kInvalidArgument,
                  "there is no picture " + std::to_string(index) + " of " + std::to_string(size()));
    const File& file = files_[static_cast<std::size_t>(index)];
    const fs::path path = folder_ / file.path;
    auto bytes = read_file(path);
    if (!bytes) return tl::unexpected(bytes.error());
    return Record{*std::move(bytes), file.label, path.string()};
  }

  std::uint64_t fingerprint() const override {
    Fnv1a print;
    for (const File& file : files_) print.add(file.path.generic_string());
    return print.value();
  }

 private:
  fs::path folder_;
  std::vector<std::string> classes_;
  std::vector<File> files_;
};

tl::unexpected<Error> unreadable(const fs::path& folder, const std::error_code& error) {
  return fail(error == std::errc::no_such_file_or_directory ? ErrorCode::kNotFound : ErrorCode::kIo,
              folder.string() + ": " + error.message());
}

Result<std::vector<fs::path>> listed(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    entries.push_back(at->path());
  if (error) return unreadable(folder, error);
  std::sort(entries.begin(), entries.end());
  return entries;
}

Result<std::vector<fs::path>> pictures_below(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> found;
  constexpr auto kFollow = fs::directory_options::follow_directory_symlink;
  for (fs::recursive_directory_iterator at(folder, kFollow, error), end; !error && at != end;
       at.increment(error))
    if (at->is_regular_file(error) && is_picture(at->path())) found.push_back(at->path());
  if (error) return unreadable(folder, error);
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

Result<std::unique_ptr<DataSet>> open_image_folder(const fs::path& folder) {
  const auto entries = listed(folder);
  if (!entries) return tl::unexpected(entries.error());
  std::vector<std::string> classes;
  std::vector<ImageFolder::File> files;
  for (const fs::path& entry : *entries) {
    std::error_code error;
    if (!fs::is_directory(entry, error)) continue;
    const auto pictures = pictures_below(entry);
    if (!pictures) return tl::unexpected(pictures.error());
    if (pictures->empty()) continue;
    for (const fs::path& picture : *pictures)
      files.push_back(
          {picture.lexically_relative(folder), static_cast<std::int64_t>(classes.size())});
    classes.push_back(entry.filename().string());
  }
  if (files.empty())
    return fail(ErrorCode::kNotFound,
                folder.string() +
                    " holds no folder with .jpg, .jpeg or .png files: each class is one folder");
  return std::make_unique<ImageFolder>(folder, std::move(classes), std::move(files));
}

}  // namespace troupe::learners::data
