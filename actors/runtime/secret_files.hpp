// Files that only their owner may read: private keys, and the folders that hold them. Written once,
// never over an existing file. Any thread.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "envs/spec/result.hpp"

namespace troupe::actors {

// Mode 0700. One that exists already is taken if nobody else may write to it.
Result<void> make_private_directory(const std::filesystem::path& directory);

// Mode 0600 for secrets, 0644 for others. kInvalidArgument, naming the file, when it exists.
Result<void> write_secret(const std::filesystem::path& file, std::string_view bytes);
Result<void> write_public(const std::filesystem::path& file, std::string_view bytes);

// At most 64 KiB. kInvalidArgument with the command that mends it when anyone but the owner can
// read the secret, or anyone but the owner can change what is public.
Result<std::string> read_secret(const std::filesystem::path& file);
Result<std::string> read_public(const std::filesystem::path& file);

}  // namespace troupe::actors
