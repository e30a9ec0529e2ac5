// A cluster of the test's own: an authority and bundles in a folder that goes with the test.
#pragma once

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>

#include "actors/runtime/certificates.hpp"
#include "actors/runtime/tls_session.hpp"

namespace troupe::actors {

class CertificateTest : public testing::Test {
 protected:
  CertificateTest() {
    std::string pattern = testing::TempDir() + "troupe_certificates_XXXXXX";
    folder_ = mkdtemp(pattern.data());
    must(init_authority(folder_ / "cluster", "test", std::chrono::hours(24)));
  }
  ~CertificateTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  static void must(const Result<void>& result) {
    if (!result) throw std::runtime_error(result.error().message);
  }

  std::filesystem::path path(const std::string& name) const { return folder_ / name; }

  // The bundle of a host at 127.0.0.1, of the authority in `cluster`.
  std::filesystem::path bundle(CertificateRequest request, const std::string& cluster = "cluster") {
    if (request.addresses.empty()) request.addresses = {"127.0.0.1", "localhost"};
    const auto made = path(request.name + std::to_string(++bundles_));
    must(issue_certificate(path(cluster), request, made));
    return made;
  }

  std::shared_ptr<const TlsCredentials> credentials(const std::filesystem::path& made,
                                                    const std::string& application = "troupe/1") {
    auto loaded = TlsCredentials::load(made, application);
    if (!loaded) throw std::runtime_error(loaded.error().message);
    return *loaded;
  }

  std::shared_ptr<const TlsCredentials> credentials_of(const std::vector<std::string>& roles) {
    return credentials(bundle({.name = roles.front(), .addresses = {}, .roles = roles}));
  }

 private:
  std::filesystem::path folder_;
  int bundles_ = 0;
};

}  // namespace troupe::actors
