// The reference and the schema against the description they are made from.
#include "actors/config/reference.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "actors/config/description.hpp"
#include "actors/config/printer.hpp"
#include "actors/config/run_options.hpp"

namespace troupe::actors {
namespace {

using testing::HasSubstr;
using testing::Not;

class ReferenceTest : public testing::Test {
 protected:
  RunOptions defaults_;
  const Description description_ = description_of(defaults_);
};

TEST_F(ReferenceTest, EveryFieldHasADocThatIsASentence) {
  ASSERT_GT(description_.fields.size(), 40u);
  for (const Field& field : description_.fields) {
    ASSERT_GE(field.doc.size(), 10u) << field.key;
    EXPECT_EQ(field.doc.back(), '.') << field.key;
  }
  for (const Group& group : description_.groups) EXPECT_EQ(group.doc.back(), '.') << group.key;
}

TEST_F(ReferenceTest, KeysAreUnique) {
  std::set<std::string> keys;
  for (const Field& field : description_.fields) EXPECT_TRUE(keys.insert(field.key).second);
  for (const Group& group : description_.groups) EXPECT_TRUE(keys.insert(group.key).second);
}

TEST_F(ReferenceTest, EveryKeyIsListedWithItsDefaultAndMeaning) {
  const std::string text = reference_text();
  for (const Field& field : description_.fields) {
    EXPECT_THAT(text, HasSubstr("  " + field.key + ": " + yaml_value(field) + " "));
    EXPECT_THAT(text, HasSubstr(field.doc));
  }
}

TEST_F(ReferenceTest, AFieldReadsLikeThis) {
  EXPECT_EQ(reference_text("d4pg.batch").value(),
            "  d4pg.batch: 256                       an integer, 1 to 1048576\n"
            "      Items per update, divided over the synchronised replicas.\n");
}

TEST_F(ReferenceTest, ASectionHasItsOwnKeysOnly) {
  const std::string text = reference_text("stop").value();
  EXPECT_THAT(text, HasSubstr("stop.wall_time: 0s"));
  EXPECT_THAT(text, Not(HasSubstr("d4pg.")));
}

TEST_F(ReferenceTest, AnUnknownKeyIsAnsweredWithTheNearest) {
  EXPECT_THAT(reference_text("d4pg.batsh").error().message, HasSubstr("did you mean d4pg.batch?"));
  EXPECT_THAT(reference_text("wall_time").error().message,
              HasSubstr("did you mean stop.wall_time?"));
}

TEST_F(ReferenceTest, TheSchemaKnowsEveryKeyAndNoOther) {
  const auto schema = nlohmann::json::parse(reference_schema());
  EXPECT_EQ(schema["additionalProperties"], false);
  std::size_t keys = 0;
  for (const Field& field : description_.fields) {
    nlohmann::json node = schema["properties"];
    std::string rest = field.key;
    for (std::size_t dot = rest.find('.'); dot != std::string::npos; dot = rest.find('.')) {
      ASSERT_TRUE(node.contains(rest.substr(0, dot))) << field.key;
      EXPECT_EQ(node[rest.substr(0, dot)]["additionalProperties"], false);
      node = nlohmann::json(node[rest.substr(0, dot)]["properties"]);
      rest.erase(0, dot + 1);
    }
    EXPECT_TRUE(node.contains(rest)) << field.key;
    ++keys;
  }
  EXPECT_EQ(keys, description_.fields.size());
}

TEST_F(ReferenceTest, TheSchemaTypesValues) {
  const auto properties = nlohmann::json::parse(reference_schema())["properties"];
  EXPECT_EQ(properties["seed"]["type"], "integer");
  EXPECT_EQ(properties["seed"]["minimum"], 0);
  EXPECT_EQ(properties["d4pg"]["properties"]["learning_rate"]["exclusiveMinimum"], 0);
  EXPECT_EQ(properties["d4pg"]["properties"]["policy"]["items"]["type"], "integer");
  EXPECT_EQ(properties["stop"]["properties"]["return"]["type"], nlohmann::json({"number", "null"}));
  EXPECT_EQ(properties["processes"]["enum"], nlohmann::json({"auto", "0", 0}));
  EXPECT_EQ(properties["extends"]["type"], "string");
}

}  // namespace
}  // namespace troupe::actors
