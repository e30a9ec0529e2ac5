// Asks the loaded libraries where they can be asked, their headers otherwise.
#include "actors/cli/versions.hpp"

#include <mujoco/mujoco.h>
#include <zmq.h>

#include <Eigen/src/Core/util/Macros.h>
#include <spdlog/version.h>
#include <CLI/Version.hpp>
#include <caf/config.hpp>
#include <nlohmann/json_fwd.hpp>

namespace troupe::actors {
namespace {

std::string dotted(int major, int minor, int patch) {
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
}

}  // namespace

std::map<std::string, std::string> library_versions() {
  int zmq_major = 0, zmq_minor = 0, zmq_patch = 0;
  zmq_version(&zmq_major, &zmq_minor, &zmq_patch);
  return {
      {"troupe", TROUPE_VERSION},
      {"CAF", dotted(CAF_MAJOR_VERSION, CAF_MINOR_VERSION, CAF_PATCH_VERSION)},
      {"CLI11", CLI11_VERSION},
      {"Eigen", dotted(EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION)},
      {"LibTorch", TROUPE_TORCH_VERSION},
      {"MuJoCo", mj_versionString()},
      {"nlohmann-json", dotted(NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                               NLOHMANN_JSON_VERSION_PATCH)},
      {"spdlog", dotted(SPDLOG_VER_MAJOR, SPDLOG_VER_MINOR, SPDLOG_VER_PATCH)},
      {"yaml-cpp", TROUPE_YAML_CPP_VERSION},
      {"ZeroMQ", dotted(zmq_major, zmq_minor, zmq_patch)},
      {"compiler", __VERSION__},
  };
}

std::string version_text() {
  const auto versions = library_versions();
  std::string text = "troupe " + versions.at("troupe") + "\n";
  for (const auto& [name, version] : versions) {
    if (name != "troupe") text += "  " + name + " " + version + "\n";
  }
  return text;
}

}  // namespace troupe::actors
