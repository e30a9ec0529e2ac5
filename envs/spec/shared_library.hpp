// Finds and loads parts of the product at run time, so that programs start without what only some
// of them need. Any thread; a library stays loaded until the process ends.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "envs/spec/result.hpp"

namespace troupe {

struct SharedLibrary {
  std::string name;      // in messages: "learning library"
  std::string file;      // "libtroupe_learners.so"
  std::string variable;  // of the environment: names the file instead, if it is set
};

// Where it is looked for, in order: the variable's path alone if it is set, else beside the
// program, and in lib/ of the program's folder and of the three folders above it.
std::vector<std::filesystem::path> candidates_of(const SharedLibrary& library);

// The address of a symbol in the first candidate that exists. kNotFound names the places looked at,
// kUnavailable the loader's own words. Only the first call costs what loading costs.
Result<void*> load_symbol(const SharedLibrary& library, const char* symbol);

// The same as the function that it is; the caller answers for its type.
template <class Function>
Result<Function*> load_function(const SharedLibrary& library, const char* symbol) {
  return load_symbol(library, symbol).map([](void* found) {
    return reinterpret_cast<Function*>(found);
  });
}

}  // namespace troupe
