// Tar shards in WebDataset's convention. libarchive reads the headers once; pictures are then read
// where they lie.
#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "envs/spec/fnv.hpp"
#include "learners/data/class_names.hpp"
#include "learners/data/data_set.hpp"

namespace troupe::learners::data {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxPicture = std::int64_t{1} << 30, kMaxLabel = 4096;
constexpr std::int64_t kMaxClasses = 1 << 20;  // their names are kept

struct Member {
  std::string key;  // the name up to the first dot of its last part
  std::uint32_t shard = 0;
  std::int64_t offset = -1, bytes = 0;  // of the picture
  std::int64_t label = -1;
};

class Descriptor {
 public:
  explicit Descriptor(const fs::path& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

class TarShards final : public DataSet {
 public:
  TarShards(std::vector<fs::path> shards, std::vector<Descriptor> files,
            std::vector<Member> members, std::vector<std::string> classes)
      : shards_(std::move(shards)),
        files_(std::move(files)),
        members_(std::move(members)),
        classes_(std::move(classes)) {}

  std::int64_t size() const override { return static_cast<std::int64_t>(members_.size()); }
  const std::vector<std::string>& classes() const override { return classes_; }

  Result<Record> read(std::int64_t index) const override {
    if (index < 0 || index >= size())
      return fail(ErrorCode::kInvalidArgument,
                  "there is no picture " + std::to_string(index) + " of " + std::to_string(size()));
    const Member& member = members_[static_cast<std::size_t>(index)];
    const std::string name = shards_[member.shard].string() + ":" + member.key;
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(member.bytes));
    for (std::size_t done = 0; done < bytes.size();) {
      const ssize_t got =
          ::pread(files_[member.shard].get(), bytes.data() + done, bytes.size() - done,
                  member.offset + static_cast<std::int64_t>(done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return fail(ErrorCode::kIo, name + ": " + std::strerror(errno));
      if (got == 0) return fail(ErrorCode::kCorrupt, name + ": the shard became shorter");
      done += static_cast<std::size_t>(got);
    }
    return Record{std::move(bytes), member.label, name};
  }

  std::vector<std::int64_t> file_starts() const override {
    std::vector<std::int64_t> starts;
    for (std::size_t i = 0; i < members_.size(); ++i)
      if (i == 0 || members_[i].shard != members_[i - 1].shard)
        starts.push_back(static_cast<std::int64_t>(i));
    return starts;
  }

  std::uint64_t fingerprint() const override {
    Fnv1a print;
    for (const Member& member : members_) {
      print.add(member.key);
      print.add(static_cast<std::uint64_t>(member.bytes));
      print.add(static_cast<std::uint64_t>(member.label));
    }
    return print.value();
  }

 private:
  std::vector<fs::path> shards_;
  std::vector<Descriptor> files_;
  std::vector<Member> members_;
  std::vector<std::string> classes_;
};

// "a/b.c.JPG" -> {"a/b", "c.jpg"}
std::pair<std::string, std::string> key_and_ending(const std::string& name) {
  const std::size_t slash = name.rfind('/');
  const std::size_t dot = name.find('.', slash == std::string::npos ? 0 : slash + 1);
  if (dot == std::string::npos) return {name, ""};
  std::string ending = name.substr(dot + 1);
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return {name.substr(0, dot), ending};
}

// Reads one shard's headers.
class Indexer {
 public:
  Indexer(const fs::path& path, std::uint32_t shard,
          const std::map<std::string, std::int64_t>& names)
      : path_(path), shard_(shard), names_(names) {}

  Result<std::vector<Member>> run() {
    const std::unique_ptr<archive, int (*)(archive*)> tar(archive_read_new(), archive_read_free);
    archive_read_support_format_tar(tar.get());
    if (archive_read_open_filename(tar.get(), path_.c_str(), 1 << 16) != ARCHIVE_OK)
      return corrupt(archive_error_string(tar.get()));
    archive_entry* entry = nullptr;
    while (true) {
      const int status = archive_read_next_header(tar.get(), &entry);
      if (status == ARCHIVE_EOF) break;
      if (status != ARCHIVE_OK) {
        const char* why = archive_error_string(tar.get());
        return corrupt(why == nullptr ? "it cannot be read" : why);
      }
      if (archive_entry_filetype(entry) != AE_IFREG) continue;
      if (auto taken = take(tar.get(), entry); !taken) return tl::unexpected(taken.error());
    }
    return complete();
  }

 private:
  tl::unexpected<Error> corrupt(const std::string& what) const {
    return fail(ErrorCode::kCorrupt, path_.string() + ": " + what);
  }

  Result<void> take(archive* tar, archive_entry* entry) {
    const char* raw = archive_entry_pathname(entry);
    const std::string name = raw == nullptr ? "" : raw;
    const auto [key, ending] = key_and_ending(name);
    const std::int64_t bytes = archive_entry_size(entry);
    const bool picture = ending == "jpg" || ending == "jpeg" || ending == "png";
    if (!picture && ending != "cls" && ending != "txt") return {};
    auto [found, fresh] = by_key_.try_emplace(key, found_.size());
    if (fresh) found_.push_back({.key = key, .shard = shard_});
    Member& member = found_[found->second];
    if (!picture) return take_label(tar, name, bytes, member);
    if (member.offset >= 0) return corrupt("'" + key + "' has two pictures");
    if (bytes > kMaxPicture) return corrupt("'" + name + "' has more than 1 GiB");
    member.offset = archive_filter_bytes(tar, 0);
    member.bytes = bytes;
    return {};
  }

  Result<void> take_label(archive* tar, const std::string& name, std::int64_t bytes,
                          Member& member) {
    if (bytes < 1 || bytes > kMaxLabel) return corrupt("'" + name + "' is no label");
    std::string text(static_cast<std::size_t>(bytes), '\0');
    if (archive_read_data(tar, text.data(), text.size()) != bytes)
      return corrupt("'" + name + "' cannot be read");
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0)
      text.pop_back();
    const auto read = std::from_chars(text.data(), text.data() + text.size(), member.label);
    if (read.ec == std::errc() && read.ptr == text.data() + text.size() && member.label >= 0) {
      if (member.label < kMaxClasses) return {};
      return corrupt("'" + name + "' is a label of " + std::to_string(kMaxClasses) + " or more");
    }
    const auto named = names_.find(text);
    if (named == names_.end())
      return corrupt("'" + name + "' is neither a number nor a name of classes.txt");
    member.label = named->second;
    return {};
  }

  Result<std::vector<Member>> complete() {
    for (const Member& member : found_) {
      if (member.offset < 0) return corrupt("'" + member.key + "' has no picture");
      if (member.label < 0) return corrupt("'" + member.key + "' has no .cls and no .txt");
    }
    return std::move(found_);
  }

  const fs::path& path_;
  std::uint32_t shard_;
  const std::map<std::string, std::int64_t>& names_;
  std::vector<Member> found_;
  std::map<std::string, std::size_t> by_key_;
};

}  // namespace

Result<std::unique_ptr<DataSet>> open_tar(const std::vector<fs::path>& shards) {
  if (shards.empty()) return fail(ErrorCode::kInvalidArgument, "tar: no shard is named");
  const fs::path listed = shards.front().parent_path() / "classes.txt";
  std::error_code error;
  Result<std::vector<std::string>> classes;
  if (fs::exists(listed, error)) classes = read_class_names(listed);
  if (!classes) return tl::unexpected(classes.error());
  std::map<std::string, std::int64_t> labels;
  for (const std::string& name : *classes)
    if (!labels.emplace(name, static_cast<std::int64_t>(labels.size())).second)
      return fail(ErrorCode::kCorrupt, listed.string() + " names '" + name + "' twice");

  std::vector<Descriptor> files;
  std::vector<Member> members;
  std::int64_t highest = -1;
  for (const fs::path& shard : shards) {
    files.emplace_back(shard);
    if (files.back().get() < 0)
      return fail(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
                  shard.string() + ": " + std::strerror(errno));
    auto found = Indexer(shard, static_cast<std::uint32_t>(files.size() - 1), labels).run();
    if (!found) return tl::unexpected(found.error());
    for (Member& member : *found) {
      highest = std::max(highest, member.label);
      members.push_back(std::move(member));
    }
  }
  if (members.empty())
    return fail(ErrorCode::kCorrupt, shards.front().string() + ": no shard holds a picture");
  if (classes->empty()) classes = numbered_classes(static_cast<std::size_t>(highest) + 1);
  if (highest >= static_cast<std::int64_t>(classes->size()))
    return fail(ErrorCode::kCorrupt, shards.front().string() + ": there is a label " +
                                         std::to_string(highest) + " but classes.txt has " +
                                         std::to_string(classes->size()) + " names");
  return std::make_unique<TarShards>(shards, std::move(files), std::move(members),
                                     *std::move(classes));
}

}  // namespace troupe::learners::data
