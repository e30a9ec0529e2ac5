// `troupe deploy`: what is printed is what a shell and Kubernetes read.
// tests/actors/deploy/validate holds the manifests against Kubernetes' own schemas.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <yaml-cpp/yaml.h>

#include <map>

#include "tests/actors/cli/cli_fixture.hpp"

namespace troupe::actors {
namespace {

using testing::HasSubstr;

class DeployTest : public CliTest {
 protected:
  std::string printed(const std::string& arguments) {
    const Outcome outcome = troupe("deploy " + arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  }
  std::map<std::string, YAML::Node> objects(const std::string& arguments) {
    std::map<std::string, YAML::Node> found;
    for (const YAML::Node& object : YAML::LoadAll(printed("kubernetes " + config_ + arguments)))
      found[object["kind"].as<std::string>()] = object;
    return found;
  }
  const std::string config_ = std::string(TROUPE_CONFIGS) + "/cartpole_swingup.yaml";
};

TEST_F(DeployTest, AJobIsAScriptThatAShellUnderstands) {
  const std::string script = printed("slurm " + config_ +
                                     " --hosts 3 --cores 4 --partition batch --set "
                                     "stop.wall_time=25h --set stop.grace=20s");
  for (const char* line :
       {"#SBATCH --array=0-2\n", "#SBATCH --cpus-per-task=4\n", "#SBATCH --partition=batch\n",
        "#SBATCH --time=1-01:00:20\n", "#SBATCH --signal=B:TERM@30\n"})
    EXPECT_THAT(script, HasSubstr(line));
  write("job.sh", script);
  EXPECT_EQ(std::system(("bash -n " + path("job.sh").string()).c_str()), 0);
  if (std::system("command -v shellcheck >/dev/null") != 0) GTEST_SKIP() << "without shellcheck";
  EXPECT_EQ(std::system(("shellcheck " + path("job.sh").string()).c_str()), 0);
}

// The script itself, with a `troupe` that only says how it was called.
TEST_F(DeployTest, TheFirstTaskRunsAndTheOthersJoinWhereItIs) {
  write("job.sh", printed("slurm " + config_ + " --certificates /c"));
  write("troupe", "#!/bin/sh\necho \"$TROUPE_CERTIFICATES $*\"\n");
  ::chmod(path("troupe").c_str(), 0755);
  const auto task = [&](int index) {
    const std::string line = "cd " + path("").string() + " && TROUPE=./troupe TROUPE_RUN=r/a " +
                             "SLURM_ARRAY_TASK_ID=" + std::to_string(index) + " bash job.sh > said";
    EXPECT_EQ(std::system(line.c_str()), 0);
    std::ifstream stream(path("said"));
    return std::string(std::istreambuf_iterator<char>(stream), {});
  };
  const std::string first = task(0), second = task(1);
  EXPECT_THAT(first,
              testing::ContainsRegex("^/c/head run .*cartpole_swingup.yaml --run-directory r/a "
                                     "--set cluster.listen=0.0.0.0:7700 "));
  EXPECT_THAT(second, testing::ContainsRegex("/c/worker join [^ ]+:7700\n$"));
}

TEST_F(DeployTest, AManifestHasWhatARunNeeds) {
  auto all = objects(" --hosts 5 --name lab-run --image registry/troupe:1 --set stop.grace=20s");
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all["ConfigMap"]["metadata"]["name"].as<std::string>(), "lab-run-config");
  const YAML::Node config = YAML::Load(all["ConfigMap"]["data"]["run.yaml"].as<std::string>());
  EXPECT_EQ(config["environment"]["name"].as<std::string>(), "dmc/cartpole_swingup");
  EXPECT_EQ(all["Service"]["spec"]["ports"][0]["port"].as<int>(), 7700);
  EXPECT_EQ(all["Deployment"]["spec"]["replicas"].as<int>(), 4);
  for (const char* kind : {"StatefulSet", "Deployment"}) {
    const YAML::Node pod = all[kind]["spec"]["template"]["spec"];
    EXPECT_EQ(pod["terminationGracePeriodSeconds"].as<int>(), 30);
    EXPECT_TRUE(pod["securityContext"]["runAsNonRoot"].as<bool>());
    EXPECT_EQ(pod["volumes"][0]["secret"]["defaultMode"].as<int>(), 0440);
    const YAML::Node container = pod["containers"][0];
    EXPECT_EQ(container["image"].as<std::string>(), "registry/troupe:1");
    EXPECT_EQ(container["readinessProbe"]["exec"]["command"][0].as<std::string>(), "troupe");
    EXPECT_GE(container["resources"]["requests"]["cpu"].as<int>(), 1);
    EXPECT_EQ(all[kind]["spec"]["selector"]["matchLabels"]["app.kubernetes.io/component"]
                  .as<std::string>(),
              all[kind]["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/component"]
                  .as<std::string>());
  }
}

TEST_F(DeployTest, SecretsArePrintedOnRequestOnly) {
  const std::string folder = path("c").string();
  EXPECT_THAT(
      printed("kubernetes " + config_ + " --certificates " + folder),
      HasSubstr("kubectl create secret generic cartpole-swingup-head --from-file=" + folder));
  const Outcome none =
      troupe("deploy kubernetes " + config_ + " --with-secrets --certificates " + folder);
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr(folder + "/head"));
  ASSERT_EQ(troupe("certificates init " + folder).code, 0);
  ASSERT_EQ(troupe("certificates issue " + folder +
                   " head --role coordinator --address cartpole-swingup-head")
                .code,
            0);
  ASSERT_EQ(troupe("certificates issue " + folder + " worker").code, 0);
  auto all = objects(" --with-secrets --certificates " + folder);
  EXPECT_THAT(all["Secret"]["stringData"]["certificate.key"].as<std::string>(),
              HasSubstr("BEGIN PRIVATE KEY"));
  EXPECT_FALSE(all["Secret"]["stringData"]["authority.key"].IsDefined());
}

TEST_F(DeployTest, WhatCannotBeIsRefused) {
  EXPECT_EQ(troupe("deploy slurm " + path("none.yaml").string()).code, 2);
  EXPECT_EQ(troupe("deploy kubernetes " + config_ + " --name Upper_case").code, 2);
  EXPECT_EQ(troupe("deploy slurm " + config_ + " --hosts 0").code, 2);
  EXPECT_EQ(troupe("deploy").code, 2);
}

}  // namespace
}  // namespace troupe::actors
