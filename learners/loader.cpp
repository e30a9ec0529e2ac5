// Implements the loading.
#include "learners/loader.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <system_error>

namespace troupe::learners {
namespace {

namespace fs = std::filesystem;
constexpr const char* kLibrary = "libtroupe_learners.so";
constexpr const char* kVariable = "TROUPE_LEARNERS_LIBRARY";
constexpr const char* kSymbol = "troupe_make_learner";

Result<MakeLearner*> load(const fs::path& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    return fail(ErrorCode::kUnavailable,
                "The learning library " + path.string() +
                    " cannot be loaded: " + (reason ? reason : "no reason given") + ".");
  }
  void* symbol = dlsym(library, kSymbol);
  if (symbol == nullptr)
    return fail(ErrorCode::kUnavailable,
                "The learning library " + path.string() + " does not export " + kSymbol + ".");
  return reinterpret_cast<MakeLearner*>(symbol);
}

}  // namespace

std::vector<fs::path> learning_library_candidates() {
  if (const char* chosen = std::getenv(kVariable)) return {chosen};
  std::vector<fs::path> candidates;
  std::error_code error;
  fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (int level = 0; level < 4 && !folder.empty(); ++level) {
    for (const char* place : {"", "lib", "learners"})
      candidates.push_back(folder / place / kLibrary);
    if (folder == folder.parent_path()) break;
    folder = folder.parent_path();
  }
  return candidates;
}

Result<MakeLearner*> load_learning_library() {
  std::string places;
  for (const fs::path& candidate : learning_library_candidates()) {
    std::error_code error;
    if (fs::exists(candidate, error)) return load(candidate);
    places += (places.empty() ? "" : ", ") + candidate.string();
  }
  return fail(ErrorCode::kNotFound, "The learning library was not found; looked for " + places +
                                        " (set " + kVariable + " to its path).");
}

}  // namespace troupe::learners
