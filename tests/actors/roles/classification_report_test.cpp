// What a person and a program read of a classifier's evaluation.
#include "actors/roles/classification_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::actors {
namespace {

using testing::HasSubstr;

// Three cats, one of them taken for a dog, and one dog.
nlohmann::json report() {
  learners::Classification counted(2);
  const std::vector<float> logits{2, 0, 2, 0, 0, 2, 0, 2};
  EXPECT_TRUE(counted.add(logits, std::vector<std::int64_t>{0, 0, 0, 1}));
  return nlohmann::json::parse(classification_json(counted, {"cat", "dog"}, 2).dump());
}

TEST(ClassificationReport, HoldsSharesByClassAndThePairsThatOccur) {
  const nlohmann::json json = report();
  EXPECT_EQ(json["top1"], 0.75);
  EXPECT_EQ(json["top5"], 1.0);
  EXPECT_EQ(json["pictures"], 4);
  EXPECT_DOUBLE_EQ(json["recall"][0].get<double>(), 2.0 / 3);
  EXPECT_EQ(json["recall"][1], 1.0);
  EXPECT_EQ(json["precision"][0], 1.0);
  EXPECT_EQ(json["precision"][1], 0.5);
  EXPECT_EQ(json["confusion"], nlohmann::json::parse("[[0,0,2],[0,1,1],[1,1,1]]"));
}

TEST(ClassificationReport, ReadsAsALineAndATable) {
  EXPECT_THAT(classification_line(report()), HasSubstr("top-1 75.00 %, top-5 100.00 %, loss 0.6"));
  EXPECT_THAT(classification_line(report()), HasSubstr("4 pictures, 2 that cannot be decoded"));
  const std::string text = classification_text(report());
  EXPECT_THAT(text, HasSubstr("cat     66.7 %  100.0 %\ndog    100.0 %   50.0 %\n"));
  EXPECT_THAT(text, HasSubstr("cat       2     1\ndog       0     1\n"));
}

}  // namespace
}  // namespace troupe::actors
