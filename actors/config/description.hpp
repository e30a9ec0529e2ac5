// The flat form of a described options struct (envs/spec/options.hpp): one entry per field with a
// pointer into the struct, so that reading, printing and checking need no templates. A Description
// is valid as long as the struct it was made from; not thread-safe.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "envs/spec/options.hpp"

namespace troupe::actors {

// Points at the field inside the described struct.
using FieldTarget =
    std::variant<bool*, std::int64_t*, double*, std::string*, std::vector<std::int64_t>*,
                 std::vector<std::string>*, Duration*, std::optional<std::int64_t>*,
                 std::optional<double>*, std::optional<Duration>*>;

struct Field {
  std::string key;  // dotted from the top: "d4pg.batch"
  FieldTarget target;
  Bounds bounds;                     // of numbers, list elements and milliseconds
  std::vector<std::string> choices;  // not empty: the only allowed strings
  std::string doc;
};

struct Group {
  std::string key;  // dotted from the top
  std::string doc;
};

// Fields and groups in the order of their description.
struct Description {
  std::vector<Field> fields;
  std::vector<Group> groups;

  // nullptr when there is none; linear in the number of fields.
  const Field* find_field(std::string_view key) const {
    for (const Field& field : fields) {
      if (field.key == key) return &field;
    }
    return nullptr;
  }
  const Group* find_group(std::string_view key) const {
    for (const Group& group : groups) {
      if (group.key == key) return &group;
    }
    return nullptr;
  }
};

// The visitor that fills a Description.
class DescriptionBuilder {
 public:
  template <class T>
  void field(std::string_view name, T& value, const char* doc) {
    field(name, value, anything(), doc);
  }

  template <class T>
  void field(std::string_view name, T& value, Bounds bounds, const char* doc) {
    description_.fields.push_back({prefix_ + std::string(name), &value, bounds, {}, doc});
  }

  void choice(std::string_view name, std::string& value, std::initializer_list<const char*> choices,
              const char* doc) {
    description_.fields.push_back({prefix_ + std::string(name), &value, anything(),
                                   std::vector<std::string>(choices.begin(), choices.end()), doc});
  }

  template <class Options>
  void group(std::string_view name, Options& options, const char* doc) {
    const std::string outer = prefix_;
    description_.groups.push_back({outer + std::string(name), doc});
    prefix_ = outer + std::string(name) + ".";
    describe(*this, options);
    prefix_ = outer;
  }

  Description take() { return std::move(description_); }

 private:
  Description description_;
  std::string prefix_;
};

// The description of `options`; its targets point into `options`.
template <class Options>
Description description_of(Options& options) {
  DescriptionBuilder builder;
  describe(builder, options);
  return builder.take();
}

}  // namespace troupe::actors
