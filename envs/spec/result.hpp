// Result<T>: what every fallible operation of Troupe returns. Expected failures are values;
// exceptions are for start-up and third-party code. No thread rule: plain values.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace troupe {

enum class ErrorCode {
  kInvalidArgument,  // the caller's value is out of its documented range
  kNotFound,         // a name, file or peer does not exist
  kCorrupt,          // bytes that fail their own checks; never trusted further
  kIo,               // the operating system refused (message holds path and strerror)
  kUnavailable,      // a peer or resource is not there now; trying again may help
  kTimeout,
  kInvalidEpisode,  // the environment's state cannot be trusted; reset before stepping again
  kNotFinite,       // NaN or infinity where a number is required
  kInternal,
};

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;  // one sentence that names the thing: file, key, actor, last step
};

template <class T>
using Result = tl::expected<T, Error>;

// `return fail(ErrorCode::kIo, "...")` from a function that returns any Result.
inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}

}  // namespace troupe
