// Implements the loading.
#include "envs/spec/shared_library.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <system_error>

namespace troupe {
namespace {

namespace fs = std::filesystem;

Result<void*> load(const SharedLibrary& library, const fs::path& path, const char* symbol) {
  void* loaded = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) {
    const char* reason = dlerror();
    return fail(ErrorCode::kUnavailable,
                "The " + library.name + " " + path.string() +
                    " cannot be loaded: " + (reason ? reason : "no reason given") + ".");
  }
  void* found = dlsym(loaded, symbol);
  if (found == nullptr)
    return fail(ErrorCode::kUnavailable,
                "The " + library.name + " " + path.string() + " does not export " + symbol + ".");
  return found;
}

}  // namespace

std::vector<fs::path> candidates_of(const SharedLibrary& library) {
  if (const char* chosen = std::getenv(library.variable.c_str())) return {chosen};
  std::vector<fs::path> candidates;
  std::error_code error;
  fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (int level = 0; level < 4 && !folder.empty(); ++level) {
    for (const char* place : {"", "lib"}) candidates.push_back(folder / place / library.file);
    if (folder == folder.parent_path()) break;
    folder = folder.parent_path();
  }
  return candidates;
}

Result<void*> load_symbol(const SharedLibrary& library, const char* symbol) {
  std::string places;
  for (const fs::path& candidate : candidates_of(library)) {
    std::error_code error;
    if (fs::exists(candidate, error)) return load(library, candidate, symbol);
    places += (places.empty() ? "" : ", ") + candidate.string();
  }
  return fail(ErrorCode::kNotFound, "The " + library.name + " was not found; looked for " + places +
                                        " (set " + library.variable + " to its path).");
}

}  // namespace troupe
