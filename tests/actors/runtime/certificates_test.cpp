// Authorities, bundles and what is refused about them.
#include "actors/runtime/certificates.hpp"

#include <sys/stat.h>

#include <ctime>
#include <fstream>

#include "actors/runtime/curve_keys.hpp"
#include "tests/actors/runtime/certificate_fixture.hpp"

namespace troupe::actors {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

mode_t mode_of(const std::filesystem::path& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 07777;
}

TEST_F(CertificateTest, ABundleSaysWhoItIsForAndWhatItMayDo) {
  const auto made = bundle({.name = "host-1",
                            .addresses = {"10.1.2.3", "node.example.org", "::1"},
                            .roles = {"coordinator", "control"}});
  const auto info = read_certificate(made / kCertificateFile);
  ASSERT_TRUE(info.has_value()) << info.error().message;
  EXPECT_EQ(info->name, "host-1");
  EXPECT_EQ(info->authority, "test");
  EXPECT_THAT(info->roles, ElementsAre("coordinator", "control"));
  EXPECT_THAT(info->addresses,
              testing::UnorderedElementsAre("10.1.2.3", "node.example.org", "::1"));
  EXPECT_TRUE(info->has_role(kControlRole));
  EXPECT_FALSE(info->has_role(kWorkerRole));
  EXPECT_LT(info->not_before, std::time(nullptr));
  EXPECT_GT(info->not_after, std::time(nullptr) + 364 * 86400);
  EXPECT_EQ(info->fingerprint.size(), 64u);
  EXPECT_TRUE(TlsCredentials::load(made, "troupe/1").has_value());
}

TEST_F(CertificateTest, OnlyTheOwnerReadsSecretsWhateverTheUmask) {
  const mode_t before = ::umask(0);
  const auto made = bundle({.name = "host", .addresses = {}});
  ::umask(before);
  EXPECT_EQ(mode_of(made), 0700u);
  for (const char* secret : {kCertificateKey, kCurveKey}) EXPECT_EQ(mode_of(made / secret), 0600u);
  EXPECT_EQ(mode_of(path("cluster") / kAuthorityKey), 0600u);
}

TEST_F(CertificateTest, NothingIsEverOverwritten) {
  const auto again = init_authority(path("cluster"), "test", std::chrono::hours(1));
  ASSERT_FALSE(again.has_value());
  EXPECT_THAT(again.error().message, HasSubstr("never overwritten"));
  const auto made = bundle({.name = "host", .addresses = {}});
  const auto twice = issue_certificate(path("cluster"), {.name = "host", .addresses = {}}, made);
  ASSERT_FALSE(twice.has_value());
  EXPECT_THAT(twice.error().message, HasSubstr((made / kCertificateKey).string()));
  EXPECT_TRUE(TlsCredentials::load(made, "troupe/1").has_value());
}

TEST_F(CertificateTest, SecretsThatOthersMayReadAreRefusedWithTheCommandThatMendsIt) {
  const auto made = bundle({.name = "host", .addresses = {}});
  ::chmod((made / kCertificateKey).c_str(), 0640);
  const auto loaded = TlsCredentials::load(made, "troupe/1");
  ASSERT_FALSE(loaded.has_value());
  EXPECT_THAT(loaded.error().message, HasSubstr("chmod 600 " + (made / kCertificateKey).string()));
  ::chmod((made / kCurveKey).c_str(), 0604);
  const auto keys = load_curve_keys(made);
  ASSERT_FALSE(keys.has_value());
  EXPECT_THAT(keys.error().message, HasSubstr("mode 0604"));
  ::chmod((path("cluster") / kAuthorityKey).c_str(), 0644);
  EXPECT_FALSE(issue_certificate(path("cluster"), {.name = "b", .addresses = {}}, path("b")));
}

TEST_F(CertificateTest, AFolderThatOthersMayWriteToIsRefused) {
  std::filesystem::create_directory(path("open"));
  ::chmod(path("open").c_str(), 0777);
  const auto made =
      issue_certificate(path("cluster"), {.name = "b", .addresses = {}}, path("open"));
  ASSERT_FALSE(made.has_value());
  EXPECT_THAT(made.error().message, HasSubstr("chmod 700"));
}

TEST_F(CertificateTest, ABundleWithoutAPartOrOfTwoClustersIsRefusedByName) {
  EXPECT_THAT(TlsCredentials::load(path("none"), "troupe/1").error().message,
              HasSubstr("troupe certificates issue"));
  must(init_authority(path("other"), "test", std::chrono::hours(24)));
  const auto mixed = bundle({.name = "host", .addresses = {}});
  std::filesystem::copy_file(path("other") / kAuthorityFile, mixed / kAuthorityFile,
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(TlsCredentials::load(mixed, "troupe/1").error().message,
              HasSubstr("not signed by authority.pem"));
  std::ofstream(mixed / kCertificateFile) << "junk";
  EXPECT_THAT(TlsCredentials::load(mixed, "troupe/1").error().message,
              HasSubstr("certificate.pem is no certificate"));
}

TEST_F(CertificateTest, AnExpiredBundleIsRefusedWithItsTime) {
  const auto made = bundle({.name = "old",
                            .addresses = {},
                            .roles = {kWorkerRole},
                            .begins = std::chrono::hours(-2),
                            .lasts = std::chrono::hours(1)});
  const auto loaded = TlsCredentials::load(made, "troupe/1");
  ASSERT_FALSE(loaded.has_value());
  EXPECT_THAT(loaded.error().message, testing::ContainsRegex("expired at .* UTC"));
}

TEST_F(CertificateTest, NamesThatCouldBeMistakenAreRefused) {
  for (const char* name : {"", "a/b", "..", "a b", "-a", "a,IP:1.2.3.4", "a\n"}) {
    EXPECT_FALSE(issue_certificate(path("cluster"), {.name = name, .addresses = {}}, path("x")))
        << name;
    EXPECT_FALSE(
        issue_certificate(path("cluster"), {.name = "host", .addresses = {name}}, path("x")))
        << name;
  }
  EXPECT_FALSE(issue_certificate(path("cluster"),
                                 {.name = "host", .addresses = {}, .roles = {"admin"}}, path("x")));
  EXPECT_FALSE(std::filesystem::exists(path("x")));
}

TEST_F(CertificateTest, WorkersAndWatchersHaveKeysOfTheirOwn) {
  const auto worker = load_curve_keys(bundle({.name = "a", .addresses = {}}));
  const auto watcher =
      load_curve_keys(bundle({.name = "b", .addresses = {}, .roles = {"watch", "control"}}));
  ASSERT_TRUE(worker.has_value() && watcher.has_value());
  EXPECT_EQ(worker->own.public_key, worker->worker);
  EXPECT_EQ(watcher->own.public_key, watcher->watch);
  EXPECT_EQ(worker->worker, watcher->worker);
  EXPECT_NE(worker->own.secret_key, watcher->own.secret_key);
}

}  // namespace
}  // namespace troupe::actors
