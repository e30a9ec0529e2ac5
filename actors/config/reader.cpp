// A walk over the YAML tree beside the description. Depth is bounded by the description's, so
// aliases that contain themselves do no harm.
#include "actors/config/reader.hpp"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>

#include "actors/config/checks.hpp"
#include "actors/config/nearest.hpp"
#include "actors/config/printer.hpp"
#include "actors/config/source.hpp"
#include "actors/config/values.hpp"

namespace troupe::actors {
namespace {

namespace fs = std::filesystem;

std::string joined(std::string_view prefix, std::string_view name) {
  return std::string(prefix) + (prefix.empty() ? "" : ".") + std::string(name);
}

std::string last_part(std::string_view key) {
  return std::string(key.substr(key.rfind('.') + 1));  // npos + 1 is 0
}

class Reader {
 public:
  Reader(const Description& description, std::span<const RenamedKey> renamed)
      : description_(description), renamed_(renamed) {}

  void read_file(const fs::path& path, std::vector<fs::path> chain, const std::string& extended_by);
  void read_text(const std::string& text, const std::string& name);
  void read_override(const std::string& text);
  Reading take() { return std::move(reading_); }

 private:
  void complain(const Source& source, int line, const std::string& text) {
    reading_.mistakes.push_back(source.place(line) + ": " + text);
  }
  std::optional<YAML::Node> root_of(const Source& source);
  void read_extends(const Source& source, const YAML::Node& root, const fs::path& path,
                    const std::vector<fs::path>& chain);
  void read_mapping(const Source& source, const YAML::Node& node, const std::string& prefix);
  void read_entry(const Source& source, const std::string& key, const YAML::Node& value, int line);
  bool read_renamed(const Source& source, const std::string& key, const YAML::Node& value,
                    int line);
  void store(const Source& source, const Field& field, const YAML::Node& value, int line);
  void refuse_unknown(const Source& source, const std::string& key, int line);

  // Whether this very source has set the key already.
  bool given_in(const Source& source, const std::string& key) const {
    const auto origin = reading_.origins.find(key);
    return origin != reading_.origins.end() && !source.command_line &&
           origin->second.file == source.name;
  }
  static std::string given_twice(const std::string& former, const std::string& present) {
    return former + " is the former name of " + present + ", which is given too; keep " + present;
  }

  const Description& description_;
  std::span<const RenamedKey> renamed_;
  std::map<std::pair<std::string, std::string>, std::string>
      former_names_;  // (source, key) -> name
  Reading reading_;
};

void Reader::read_file(const fs::path& path, std::vector<fs::path> chain,
                       const std::string& extended_by) {
  std::error_code error;
  const fs::path identity = fs::weakly_canonical(path, error);
  if (std::find(chain.begin(), chain.end(), identity) != chain.end()) {
    std::string circle;
    for (const fs::path& link : chain) circle += link.filename().string() + " -> ";
    reading_.mistakes.push_back(extended_by + ": extends goes in a circle: " + circle +
                                identity.filename().string());
    return;
  }
  chain.push_back(identity);
  const auto source = file_source(path, extended_by);
  if (!source) {
    if (extended_by.empty()) reading_.missing = source.error().code == ErrorCode::kNotFound;
    reading_.mistakes.push_back(source.error().message);
    return;
  }
  const auto root = root_of(*source);
  if (!root) return;
  read_extends(*source, *root, path, chain);
  read_mapping(*source, *root, "");
}

void Reader::read_text(const std::string& text, const std::string& name) {
  const Source source{name, text, false};
  const auto root = root_of(source);
  if (!root) return;
  for (const auto& entry : *root)
    if (entry.first.IsScalar() && entry.first.Scalar() == "extends")
      complain(source, entry.first.Mark().line, "extends belongs into a file");
  read_mapping(source, *root, "");
}

// nullopt: there is nothing to read.
std::optional<YAML::Node> Reader::root_of(const Source& source) {
  const auto root = parse(source);
  if (!root) {
    reading_.mistakes.push_back(root.error().message);
    return std::nullopt;
  }
  if (root->IsNull()) return std::nullopt;
  if (!root->IsMap()) {
    complain(source, root->Mark().line, "expects `key: value` lines, found " + found_value(*root));
    return std::nullopt;
  }
  return *root;
}

void Reader::read_extends(const Source& source, const YAML::Node& root, const fs::path& path,
                          const std::vector<fs::path>& chain) {
  for (const auto& entry : root) {
    if (!entry.first.IsScalar() || entry.first.Scalar() != "extends") continue;
    const int line = entry.first.Mark().line;
    if (!entry.second.IsScalar() || entry.second.Scalar().empty()) {
      complain(source, line,
               "extends expects the name of one file, found " + found_value(entry.second));
      continue;
    }
    read_file((path.parent_path() / entry.second.Scalar()).lexically_normal(), chain,
              "extended by " + source.place(line));
  }
}

void Reader::read_mapping(const Source& source, const YAML::Node& node, const std::string& prefix) {
  std::map<std::string, int> seen;
  for (const auto& entry : node) {
    const int line = entry.first.Mark().line;
    if (!entry.first.IsScalar()) {
      complain(source, line, "a key must be a name, found " + found_value(entry.first));
      continue;
    }
    const std::string& name = entry.first.Scalar();
    const std::string key = joined(prefix, name);
    const auto [first, is_new] = seen.emplace(name, line);
    if (!is_new) {
      complain(source, line,
               key + " is given twice; the first is in line " + std::to_string(first->second + 1));
      continue;
    }
    if (prefix.empty() && name == "extends" && !source.command_line) continue;
    if (name.find('.') != std::string::npos) {
      const std::string section = joined(prefix, name.substr(0, name.find('.')));
      complain(source, line,
               "unknown key " + name + "; write nested keys as `" + section + ": {" +
                   name.substr(name.find('.') + 1) + ": ...}`");
      continue;
    }
    read_entry(source, key, entry.second, line);
  }
}

void Reader::read_entry(const Source& source, const std::string& key, const YAML::Node& value,
                        int line) {
  if (const Field* field = description_.find_field(key)) {
    const auto former = former_names_.find({source.name, key});
    if (former != former_names_.end()) complain(source, line, given_twice(former->second, key));
    store(source, *field, value, line);
  } else if (description_.find_group(key)) {
    if (value.IsMap()) {
      read_mapping(source, value, key);
    } else if (!value.IsNull()) {  // an empty section changes nothing
      complain(source, line,
               key + " is a section and expects keys of its own, found " + found_value(value));
    }
  } else if (!read_renamed(source, key, value, line)) {
    refuse_unknown(source, key, line);
  }
}

void Reader::store(const Source& source, const Field& field, const YAML::Node& value, int line) {
  const auto complaints = assign(field, value, line, source.text);
  for (const Complaint& complaint : complaints) {
    complain(source, complaint.line, field.key + " " + complaint.text);
  }
  if (complaints.empty()) reading_.origins[field.key] = source.origin(line);
}

bool Reader::read_renamed(const Source& source, const std::string& key, const YAML::Node& value,
                          int line) {
  const auto renamed = std::find_if(renamed_.begin(), renamed_.end(),
                                    [&](const RenamedKey& entry) { return entry.key == key; });
  if (renamed == renamed_.end()) return false;
  const std::string present(renamed->present);
  const std::string reason =
      renamed->reason.empty() ? "" : " (" + std::string(renamed->reason) + ")";
  const Field* field = description_.find_field(present);
  if (!renamed->honoured || !field) {
    complain(source, line,
             "unknown key " + key +
                 (present.empty() ? "; it has no successor" : "; use " + present) + reason);
    return true;
  }
  if (given_in(source, present)) {
    complain(source, line, given_twice(key, present));
    return true;
  }
  former_names_[{source.name, present}] = key;
  store(source, *field, value, line);
  reading_.notes.push_back(source.place(line) + ": " + key + " is now called " + present + reason +
                           "; its value is used");
  return true;
}

void Reader::refuse_unknown(const Source& source, const std::string& key, int line) {
  const std::size_t dot = key.rfind('.');
  const std::string prefix = dot == std::string::npos ? "" : key.substr(0, dot + 1);
  std::vector<std::string> siblings, elsewhere;
  const auto sort_in = [&](const std::string& candidate) {
    const bool sibling =
        candidate.starts_with(prefix) && candidate.find('.', prefix.size()) == std::string::npos;
    (sibling ? siblings : elsewhere).push_back(candidate);
  };
  for (const Group& group : description_.groups) sort_in(group.key);
  for (const Field& field : description_.fields) sort_in(field.key);

  std::string nearest = nearest_name(key.substr(prefix.size()), [&] {
    std::vector<std::string> names;
    for (const std::string& sibling : siblings) names.push_back(sibling.substr(prefix.size()));
    return names;
  }());
  if (!nearest.empty()) nearest = prefix + nearest;
  // The right name in the wrong section.
  for (const std::string& candidate : elsewhere) {
    if (nearest.empty() && last_part(candidate) == last_part(key)) nearest = candidate;
  }
  complain(source, line,
           "unknown key " + key +
               (nearest.empty() ? "; `troupe help config` lists all keys"
                                : "; did you mean " + nearest + "?"));
}

void Reader::read_override(const std::string& text) {
  const std::size_t equals = text.find('=');
  std::string key = text.substr(0, equals);
  while (!key.empty() && key.back() == ' ') key.pop_back();
  const Source source{"--set " + text, equals == std::string::npos ? "" : text.substr(equals + 1),
                      true};
  if (equals == std::string::npos || key.empty()) {
    complain(source, 0, "expects key=value, for example --set stop.actor_steps=1e5");
    return;
  }
  if (key == "extends") {
    complain(source, 0, "extends belongs into a file");
    return;
  }
  const auto value = parse(source);
  if (!value) {
    reading_.mistakes.push_back(value.error().message);
    return;
  }
  // A path through a key that is not there is reported as far as it is wrong.
  read_entry(source, key, *value, 0);
}

}  // namespace

std::string Origin::text() const {
  switch (kind) {
    case Kind::kFile:
      return file + ":" + std::to_string(line);
    case Kind::kCommandLine:
      return "command line";
    case Kind::kDefault:
      break;
  }
  return "default";
}

const Origin& LoadedConfig::origin(const std::string& key) const {
  static const Origin kDefaultOrigin;
  const auto found = origins.find(key);
  return found == origins.end() ? kDefaultOrigin : found->second;
}

Reading read_config(const Description& description, const fs::path& path,
                    const std::vector<std::string>& overrides,
                    std::span<const RenamedKey> renamed) {
  Reader reader(description, renamed);
  reader.read_file(path, {}, "");
  for (const std::string& text : overrides) reader.read_override(text);
  return reader.take();
}

namespace {

// `read` fills a reader of the description it is given; `name` is for the checks' messages.
template <class Read>
Result<LoadedConfig> loaded(const std::string& name, Read read) {
  LoadedConfig config;
  const Description description = description_of(config.options);
  Reading reading = read(description);
  if (!reading.mistakes.empty()) {
    std::string message;
    for (const std::string& mistake : reading.mistakes) {
      message += (message.empty() ? "" : "\n") + mistake;
    }
    return fail(reading.missing ? ErrorCode::kNotFound : ErrorCode::kInvalidArgument,
                std::move(message));
  }
  config.origins = std::move(reading.origins);
  config.notes = std::move(reading.notes);
  if (auto checked = check_options(config.options); !checked) {
    return fail(checked.error().code, name + ": " + checked.error().message);
  }
  config.hash = config_hash(config.options);
  return config;
}

}  // namespace

Result<LoadedConfig> load_config(const fs::path& path, const std::vector<std::string>& overrides) {
  return loaded(path.string(), [&](const Description& description) {
    return read_config(description, path, overrides);
  });
}

Result<LoadedConfig> parse_config(const std::string& text, const std::string& name) {
  return loaded(name, [&](const Description& description) {
    Reader reader(description, kRenamedKeys);
    reader.read_text(text, name);
    return reader.take();
  });
}

}  // namespace troupe::actors
