// `troupe certificates`, as its user meets it.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/actors/cli/cli_fixture.hpp"

namespace troupe::actors {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Json = nlohmann::json;

class CertificatesCliTest : public CliTest {
 protected:
  const std::string folder_ = path("cluster").string();
};

TEST_F(CertificatesCliTest, AnAuthorityIssuesAndShows) {
  EXPECT_EQ(troupe("certificates init " + folder_ + " --cluster lab").code, 0);
  const Outcome issued = troupe("certificates issue " + folder_ +
                                " head --address 10.0.0.1 --address head.example.org"
                                " --role coordinator --role control --days 30");
  EXPECT_EQ(issued.code, 0) << issued.err;
  EXPECT_THAT(issued.out, HasSubstr(folder_ + "/head"));
  EXPECT_EQ(troupe("certificates issue " + folder_ + " node-1").code, 0);
  const Outcome shown = troupe("certificates show " + folder_ + " --json");
  ASSERT_EQ(shown.code, 0) << shown.err;
  const Json all = Json::parse(shown.out)["certificates"];
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0]["name"], "lab");
  EXPECT_THAT(all[1]["roles"], ElementsAre("coordinator", "control"));
  EXPECT_EQ(all[1]["days_left"], 29);
  EXPECT_THAT(all[2]["roles"], ElementsAre("worker"));
  EXPECT_THAT(all[2]["addresses"], ElementsAre("node-1"));
  EXPECT_THAT(troupe("certificates show " + folder_ + "/head").out, HasSubstr("head.example.org"));
}

TEST_F(CertificatesCliTest, WhatCannotBeIsRefusedInASentence) {
  EXPECT_THAT(troupe("certificates show " + folder_).err, HasSubstr("troupe certificates init"));
  const Outcome none = troupe("certificates issue " + folder_ + " a");
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("there is no authority in " + folder_));
  ASSERT_EQ(troupe("certificates init " + folder_).code, 0);
  EXPECT_THAT(troupe("certificates init " + folder_).err, HasSubstr("never overwritten"));
  EXPECT_THAT(troupe("certificates issue " + folder_ + " a --role boss").err,
              HasSubstr("there is no role 'boss'"));
  EXPECT_EQ(troupe("certificates issue " + folder_ + " ../a").code, 2);
}

}  // namespace
}  // namespace troupe::actors
