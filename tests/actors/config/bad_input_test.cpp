// What a bad configuration is answered with: each message names the file, the line and the key, and
// says what to write instead.
#include <gmock/gmock.h>

#include <algorithm>

#include "actors/config/reader.hpp"
#include "tests/actors/config/config_files.hpp"

namespace troupe::actors {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class BadInputTest : public ConfigFiles {
 protected:
  // The whole message about a file; the place of a mistake in it reads "config.yaml:LINE: ".
  std::string error(const std::string& text, const std::vector<std::string>& overrides = {}) {
    const auto config = load_config(write("config.yaml", kTask + text), overrides);
    if (config) return "accepted";
    EXPECT_EQ(config.error().code, ErrorCode::kInvalidArgument);
    const std::string prefix = path("").string();
    std::string message = config.error().message;
    for (std::size_t at = message.find(prefix); at != std::string::npos;
         at = message.find(prefix)) {
      message.erase(at, prefix.size());
    }
    return message;
  }

  static constexpr const char* kTask = "environment: {name: pendulum}\n";
};

TEST_F(BadInputTest, AnUnknownKeyIsNamedWithLineAndNearestName) {
  EXPECT_EQ(error("\nd4pg:\n  lerning_rate: 1e-4\n"),
            "config.yaml:4: unknown key d4pg.lerning_rate; did you mean d4pg.learning_rate?");
  EXPECT_EQ(error("evaluaton: {every: 3}\n"),
            "config.yaml:2: unknown key evaluaton; did you mean evaluation?");
  EXPECT_EQ(error("frobnicate: 3\n"),
            "config.yaml:2: unknown key frobnicate; `troupe help config` lists all keys");
}

TEST_F(BadInputTest, AKeyInTheWrongSectionIsFoundElsewhere) {
  EXPECT_THAT(error("learning_rate: 1e-4\n"), HasSubstr("did you mean d4pg.learning_rate?"));
  EXPECT_THAT(error("replay: {seed: 1}\n"), HasSubstr("did you mean seed?"));
}

TEST_F(BadInputTest, NamesOfOtherSystemsAreAnsweredWithOurs) {
  EXPECT_THAT(error("d4pg: {gamma: .9}\n"), HasSubstr("unknown key d4pg.gamma; use d4pg.discount"));
}

TEST_F(BadInputTest, DottedKeysBelongOnTheCommandLine) {
  EXPECT_THAT(error("d4pg.batch: 3\n"), HasSubstr("write nested keys as `d4pg: {batch: ...}`"));
}

TEST_F(BadInputTest, QuotedNumbersAreStrings) {
  EXPECT_EQ(error("d4pg: {learning_rate: \"1e-4\"}\n"),
            "config.yaml:2: d4pg.learning_rate expects a number (above 0), found the quoted string "
            "\"1e-4\"; remove the quotes");
  EXPECT_THAT(error("seed: '3'\n"), HasSubstr("seed expects an integer"));
}

TEST_F(BadInputTest, EveryDoubtfulScalarIsTypedOrRefused) {
  // Typed.
  for (const char* number : {"1e-4", "1e4", ".5", "0x10", "1E0"}) {
    EXPECT_EQ(error("d4pg: {learning_rate: " + std::string(number) + "}\n"), "accepted") << number;
  }
  // Refused.
  for (const char* other : {"1_000", "~", "null", "\"1e-4\"", "yes", "1:5", "1e", "0b1", "fast"}) {
    EXPECT_THAT(error("d4pg: {learning_rate: \n    " + std::string(other) + "}\n"),
                HasSubstr("d4pg.learning_rate expects a number (above 0)"))
        << other;
  }
  EXPECT_THAT(error("replay: {capacity: 1_000}\n"), EndsWith("write 1000 without underscores"));
}

TEST_F(BadInputTest, OnlyTrueAndFalseAreBooleans) {
  for (const char* text : {"yes", "on", "1", "\"true\"", "~", "[true]"}) {
    EXPECT_THAT(error("deterministic: " + std::string(text) + "\n"),
                HasSubstr("config.yaml:2: deterministic expects true or false"))
        << text;
  }
  EXPECT_THAT(error("deterministic: yes\n"), EndsWith("YAML 1.2 has only true and false"));
}

TEST_F(BadInputTest, IntegersMustBeExact) {
  EXPECT_EQ(error("replay: {capacity: 2.5e3}\n"), "accepted");
  EXPECT_THAT(error("replay: {capacity: 1.5}\n"),
              HasSubstr("expects an integer (1 to 1e12), found the number 1.5"));
  EXPECT_THAT(error("seed: 1e17\n"), HasSubstr("too large to be exact"));
  EXPECT_THAT(error("seed: 99999999999999999999\n"), HasSubstr("more than 64 bits"));
  EXPECT_THAT(error("seed: .nan\n"), HasSubstr("seed expects an integer"));
}

TEST_F(BadInputTest, ValuesOutOfRangeAreToldTheRange) {
  EXPECT_EQ(error("seed: -1\n"), "config.yaml:2: seed is -1; allowed: 0 to 9007199254740992");
  EXPECT_THAT(error("d4pg: {learning_rate: 0}\n"), HasSubstr("is 0; allowed: above 0"));
  EXPECT_THAT(error("d4pg: {discount: 1.01}\n"), HasSubstr("is 1.01; allowed: 0 to 1"));
  EXPECT_THAT(error("d4pg: {policy: [64, 0]}\n"),
              HasSubstr("d4pg.policy element 2 is 0; allowed: 1 to 65536"));
  EXPECT_THAT(error("stop: {grace: 1ms}\n"), HasSubstr("is 1ms; allowed: 500ms to 10m"));
  EXPECT_THAT(error("d4pg: {v_max: .inf}\n"), HasSubstr("which is not finite"));
  EXPECT_THAT(error("d4pg: {v_max: 1e999}\n"), HasSubstr("which is not finite"));
}

TEST_F(BadInputTest, WrongKindsAreToldWhatIsAllowed) {
  EXPECT_EQ(error("replay: {selector: fifo}\n"),
            "config.yaml:2: replay.selector is \"fifo\"; allowed: uniform, prioritised");
  EXPECT_EQ(error("replay: {selector: {queue: 3}}\n"),
            "config.yaml:2: replay.selector expects one of uniform, prioritised, found a mapping");
  EXPECT_THAT(error("replay: {placement: lerner}\n"),
              HasSubstr("allowed: auto, learner, own; did you mean learner?"));
  EXPECT_THAT(
      error("replay: {samples_per_insert: {queue: 100}}\n"),
      HasSubstr("replay.samples_per_insert expects a number (at least 0), found a mapping"));
  EXPECT_THAT(error("replay: {rate_limiter: queue}\n"),
              HasSubstr("unknown key replay.rate_limiter; use replay.samples_per_insert"));
  EXPECT_THAT(error("d4pg: {policy: 256}\n"), HasSubstr("expects a list of integers such as"));
  EXPECT_THAT(error("d4pg: {policy: [64, big]}\n"), HasSubstr("d4pg.policy element 2 expects"));
  EXPECT_THAT(error("d4pg: 3\n"), HasSubstr("d4pg is a section and expects keys of its own"));
  EXPECT_THAT(error("job:\n"),
              HasSubstr("job expects one of d4pg, resnet, sngan, null, found nothing (null)"));
}

TEST_F(BadInputTest, ListElementsAreNamedByTheirOwnLine) {
  EXPECT_THAT(error("d4pg:\n  policy:\n    - 64\n    - none\n"), StartsWith("config.yaml:5: "));
}

TEST_F(BadInputTest, PlainNumbersAreNoDurations) {
  EXPECT_EQ(error("checkpoint: {every: 60}\n"),
            "config.yaml:2: checkpoint.every expects a duration such as 500ms, 60s, 5m or 2h (at "
            "least 0s), found the integer 60; add a unit, for example 60s");
}

TEST_F(BadInputTest, DuplicateKeysAreRefused) {
  EXPECT_EQ(error("seed: 1\nseed: 1\n"),
            "config.yaml:3: seed is given twice; the first is in line 2");
  EXPECT_THAT(error("d4pg:\n  batch: 3\n  batch: 4\n"), HasSubstr("d4pg.batch is given twice"));
  EXPECT_THAT(error("environment: {time_limit: 3}\n"), HasSubstr("environment is given twice"));
}

TEST_F(BadInputTest, AllMistakesAreListedAtOnce) {
  const std::string message = error("seed: x\nd4pg: {batsh: 3, sigma: -1}\n", {"job=ppo"});
  EXPECT_THAT(message, AllOf(HasSubstr("config.yaml:2: seed"), HasSubstr("d4pg.batsh"),
                             HasSubstr("d4pg.sigma is -1"), HasSubstr("--set job=ppo: job is")));
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 3);
}

TEST_F(BadInputTest, BrokenYamlIsNamedWithItsLine) {
  EXPECT_THAT(error("a: [1,\nb: 2\n"),
              AllOf(StartsWith("config.yaml:"), HasSubstr("not valid YAML")));
  EXPECT_THAT(error("\tseed: 1\n"), HasSubstr("not valid YAML"));
  EXPECT_THAT(error("---\nseed: 1\n"), HasSubstr("second document"));
  EXPECT_THAT(error("d4pg: {batch: !!float 3}\n"), HasSubstr("may not be tagged"));
  EXPECT_THAT(error("? [a, b]\n: 3\n"), HasSubstr("a key must be a name"));
  EXPECT_THAT(error(std::string(100000, '[')), HasSubstr("not valid YAML"));
  EXPECT_THAT(error("d4pg: &me {batch: *me}\n"), HasSubstr("d4pg.batch expects an integer"));
}

TEST_F(BadInputTest, FilesThatCannotBeReadAreNamed) {
  const auto missing = load_config(path("nowhere.yaml"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(missing.error().message, AllOf(HasSubstr("nowhere.yaml"), HasSubstr("no such file")));
  EXPECT_THAT(load_config(path("")).error().message, HasSubstr("is a directory"));
  EXPECT_THAT(load_config(write("list.yaml", "- 1\n")).error().message,
              HasSubstr("list.yaml:1: expects `key: value` lines, found a list"));
}

TEST_F(BadInputTest, ExtendsNamesBothFilesAndRefusesCircles) {
  EXPECT_THAT(error("extends: nowhere.yaml\n"),
              HasSubstr("nowhere.yaml (extended by config.yaml:2): no such file"));
  EXPECT_THAT(error("extends: [a, b]\n"), HasSubstr("extends expects the name of one file"));
  write("a.yaml", "extends: b.yaml\n");
  write("b.yaml", "extends: a.yaml\n");
  EXPECT_THAT(error("extends: a.yaml\n"),
              HasSubstr("extends goes in a circle: config.yaml -> a.yaml -> b.yaml -> a.yaml"));
  EXPECT_THAT(error("extends: config.yaml\n"), HasSubstr("config.yaml -> config.yaml"));
  write("wrong.yaml", "\nsed: 1\n");
  EXPECT_THAT(error("extends: wrong.yaml\n"),
              HasSubstr("wrong.yaml:2: unknown key sed; did you mean seed?"));
}

TEST_F(BadInputTest, OverridesAreTypedLikeTheFile) {
  EXPECT_EQ(error("", {"d4pg.bach=3"}),
            "--set d4pg.bach=3: unknown key d4pg.bach; did you mean d4pg.batch?");
  EXPECT_THAT(error("", {"seed"}), HasSubstr("--set seed: expects key=value"));
  EXPECT_THAT(error("", {"=3"}), HasSubstr("expects key=value"));
  EXPECT_THAT(error("", {"seed="}), HasSubstr("seed expects an integer"));
  EXPECT_THAT(error("", {"seed=\"0\""}), HasSubstr("remove the quotes"));
  EXPECT_THAT(error("", {"seed=[1"}), HasSubstr("--set seed=[1: is not valid YAML"));
  EXPECT_THAT(error("", {"d4pg.policy.x=3"}), HasSubstr("unknown key d4pg.policy.x"));
  EXPECT_THAT(error("", {"extends=a.yaml"}), HasSubstr("extends belongs into a file"));
}

}  // namespace
}  // namespace troupe::actors
