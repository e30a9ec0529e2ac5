// Files and yaml-cpp's parser, with their errors turned into values.
#include "actors/config/source.hpp"

#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>
#include <vector>

namespace troupe::actors {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxFileBytes = std::size_t{4} << 20;

}  // namespace

std::string Source::place(int line) const {
  return command_line ? name : name + ":" + std::to_string(line + 1);
}

Origin Source::origin(int line) const {
  if (command_line) return {Origin::Kind::kCommandLine, "", 0};
  return {Origin::Kind::kFile, name, line + 1};
}

Result<Source> file_source(const fs::path& path, const std::string& extended_by) {
  const std::string named = path.string() + (extended_by.empty() ? "" : " (" + extended_by + ")");
  std::error_code error;
  if (!fs::exists(path, error)) return fail(ErrorCode::kNotFound, named + ": no such file");
  if (fs::is_directory(path, error)) {
    return fail(ErrorCode::kIo, named + ": is a directory, not a YAML file");
  }
  std::ifstream stream(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  if (!stream.is_open() || stream.bad()) {
    return fail(ErrorCode::kIo, named + ": cannot be read; check its permissions");
  }
  if (text.size() > kMaxFileBytes) {
    return fail(ErrorCode::kIo, named + ": has " + std::to_string(text.size()) +
                                    " bytes; a configuration has at most " +
                                    std::to_string(kMaxFileBytes));
  }
  // yaml-cpp skips the byte order mark without counting it in its positions.
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  return Source{path.string(), std::move(text), false};
}

Result<YAML::Node> parse(const Source& source) {
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(source.text);
    if (documents.empty()) return YAML::Node();
    if (documents.size() == 1) return documents[0];
    return fail(ErrorCode::kInvalidArgument, source.place(documents[1].Mark().line) +
                                                 ": starts a second document; one file is one");
  } catch (const YAML::Exception& exception) {
    return fail(ErrorCode::kInvalidArgument,
                source.place(exception.mark.line) + ": is not valid YAML: " + exception.msg);
  }
}

}  // namespace troupe::actors
