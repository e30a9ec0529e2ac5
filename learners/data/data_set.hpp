// Sets of labelled pictures, and the names they are opened by. A set is read-only and thread-safe:
// any number of threads may read records at once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "envs/spec/options.hpp"
#include "envs/spec/result.hpp"
#include "learners/data/image.hpp"

namespace troupe::learners::data {

// One picture as the set stores it: encoded (JPEG or PNG), or pixels.
struct Record {
  std::variant<std::vector<std::uint8_t>, Image> content;
  std::int64_t label = 0;  // 0 to classes - 1
  std::string name;        // for messages: a file, or the set's file and the index in it
};

class DataSet {
 public:
  virtual ~DataSet() = default;
  virtual std::int64_t size() const = 0;
  // kIo or kCorrupt naming the file; kInvalidArgument for an index out of range.
  virtual Result<Record> read(std::int64_t index) const = 0;
  // Names of the classes, in the order of the labels.
  virtual const std::vector<std::string>& classes() const = 0;
  // Channels that its pictures are decoded to: 1 or 3.
  virtual int channels() const { return 3; }
  // Records that lie one after the other in one file: where each file's begin. Reading them in
  // order is what a slow disk wants. One file of all by default.
  virtual std::vector<std::int64_t> file_starts() const { return {0}; }
  // A digest of what the set holds (names, sizes, labels), so that a run does not go on with
  // another.
  virtual std::uint64_t fingerprint() const = 0;
};

struct DataOptions {
  std::string kind = "image_folder";
  std::string path{};             // folder or file; of training and evaluation where they are apart
  std::string evaluation_path{};  // empty: the kind's own split, or `path`
  std::vector<std::string> classes{};  // of idx, which has no names: else the labels' numbers
  std::int64_t synthetic_size = 1024, synthetic_classes = 10, synthetic_side = 32;
};

template <class Visitor>
void describe(Visitor& visitor, DataOptions& options) {
  visitor.choice("kind", options.kind,
                 {"image_folder", "cifar10", "cifar100", "idx", "tar", "synthetic"},
                 "Format of the pictures.");
  visitor.field(
      "path", options.path,
      "Folder of the set: one folder a class for image_folder, the binary files of CIFAR, "
      "the idx files of MNIST (also .gz), the shards of tar.");
  visitor.field("evaluation_path", options.evaluation_path,
                "Folder of the evaluation set where it is not the kind's own (CIFAR's test batch, "
                "the t10k files).");
  visitor.field("classes", options.classes, anything(),
                "Names of the classes of idx, in the order of the labels; the other kinds have "
                "their own.");
  visitor.field("synthetic_size", options.synthetic_size, between(1, 1e9),
                "Pictures of the synthetic set.");
  visitor.field("synthetic_classes", options.synthetic_classes, between(1, 1e6), "Its classes.");
  visitor.field("synthetic_side", options.synthetic_side, between(1, 4096),
                "Side of its pictures in pixels.");
}

enum class Split { kTraining, kEvaluation };

// Opens what the options name. Errors name the file or folder and what was expected there.
Result<std::unique_ptr<DataSet>> open_data_set(const DataOptions& options, Split split);

// The formats by themselves.
//
// One folder a class; its pictures are files that end in .jpg, .jpeg or .png, at any depth, in the
// order of their paths. Links are followed.
Result<std::unique_ptr<DataSet>> open_image_folder(const std::filesystem::path& folder);
// Binary files of www.cs.toronto.edu/~kriz/cifar.html, all of them 3 x 32 x 32. `files` are joined
// in their order; class names come from `batches.meta.txt` or `fine_label_names.txt` beside them.
Result<std::unique_ptr<DataSet>> open_cifar(const std::vector<std::filesystem::path>& files,
                                            bool hundred);
// An idx file of pictures and one of labels (yann.lecun.com/exdb/mnist), plain or gzip. `classes`
// may be empty: the labels' numbers are the names then.
Result<std::unique_ptr<DataSet>> open_idx(const std::filesystem::path& pictures,
                                          const std::filesystem::path& labels,
                                          std::vector<std::string> classes);
// Tar files in WebDataset's convention: the members of a sample have one name and different
// endings, here one of jpg, jpeg, png with one of cls (a number) or txt (a class name of
// `classes.txt` beside the shards). The headers are read once, here.
Result<std::unique_ptr<DataSet>> open_tar(const std::vector<std::filesystem::path>& shards);
// Random pictures that carry their class as colour and stripes, so that a network can learn them;
// another seed gives other pictures of the same classes.
std::unique_ptr<DataSet> make_synthetic(std::int64_t size, std::int64_t classes, int side,
                                        std::uint64_t seed);

}  // namespace troupe::learners::data
