// Finds the files of each kind of set in the folder that a configuration names.
#include "learners/data/data_set.hpp"

#include <algorithm>
#include <array>
#include <system_error>

namespace troupe::learners::data {
namespace {

namespace fs = std::filesystem;

// "train" and "t10k" are MNIST's own names; Fashion-MNIST and KMNIST kept them.
Result<std::unique_ptr<DataSet>> open_idx_folder(const fs::path& folder, Split split,
                                                 const std::vector<std::string>& classes) {
  const std::string stem = split == Split::kTraining ? "train" : "t10k";
  std::error_code error;
  for (const char* ending : {"", ".gz"}) {
    const fs::path pictures = folder / (stem + "-images-idx3-ubyte" + ending);
    if (fs::exists(pictures, error))
      return open_idx(pictures, folder / (stem + "-labels-idx1-ubyte" + ending), classes);
  }
  return fail(ErrorCode::kNotFound,
              folder.string() + " holds no " + stem + "-images-idx3-ubyte, plain or .gz");
}

Result<std::unique_ptr<DataSet>> open_cifar_folder(const fs::path& folder, Split split,
                                                   bool hundred) {
  std::vector<fs::path> files;
  if (hundred) {
    files.push_back(folder / (split == Split::kTraining ? "train.bin" : "test.bin"));
  } else if (split == Split::kEvaluation) {
    files.push_back(folder / "test_batch.bin");
  } else {
    for (int i = 1; i <= 5; ++i)
      files.push_back(folder / ("data_batch_" + std::to_string(i) + ".bin"));
  }
  return open_cifar(files, hundred);
}

Result<std::unique_ptr<DataSet>> open_tar_folder(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> shards;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (at->path().extension() == ".tar") shards.push_back(at->path());
  if (error) return fail(ErrorCode::kNotFound, folder.string() + ": " + error.message());
  if (shards.empty()) return fail(ErrorCode::kNotFound, folder.string() + " holds no .tar file");
  std::sort(shards.begin(), shards.end());
  return open_tar(shards);
}

}  // namespace

Result<std::unique_ptr<DataSet>> open_data_set(const DataOptions& options, Split split) {
  const bool evaluation = split == Split::kEvaluation;
  if (options.kind == "synthetic")
    return make_synthetic(options.synthetic_size, options.synthetic_classes,
                          static_cast<int>(options.synthetic_side), evaluation ? 2 : 1);
  const fs::path folder =
      evaluation && !options.evaluation_path.empty() ? options.evaluation_path : options.path;
  if (folder.empty())
    return fail(ErrorCode::kInvalidArgument, "data.path is empty: it names the folder of the set");
  if (options.kind == "idx") return open_idx_folder(folder, split, options.classes);
  if (options.kind == "cifar10") return open_cifar_folder(folder, split, false);
  if (options.kind == "cifar100") return open_cifar_folder(folder, split, true);
  if (options.kind == "tar") return open_tar_folder(folder);
  if (options.kind == "image_folder") return open_image_folder(folder);
  return fail(ErrorCode::kInvalidArgument, "data.kind '" + options.kind + "' is unknown");
}

}  // namespace troupe::learners::data
