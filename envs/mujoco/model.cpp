// Loads and shares compiled models.
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <mutex>

#include "envs/mujoco/guard.hpp"
#include "envs/mujoco/simulation.hpp"

namespace troupe::envs::mujoco {
namespace {

struct SpecDeleter {
  void operator()(mjSpec* spec) const { mj_deleteSpec(spec); }
};

void shrink_textures(mjSpec* spec) {
  for (mjsElement* element = mjs_firstElement(spec, mjOBJ_TEXTURE); element != nullptr;
       element = mjs_nextElement(spec, element)) {
    mjsTexture* texture = mjs_asTexture(element);
    if (texture->builtin != mjBUILTIN_NONE) texture->width = texture->height = 1;
  }
}

}  // namespace

std::string model_directory() {
  const char* chosen = std::getenv("TROUPE_MODEL_PATH");
  return chosen != nullptr && *chosen != '\0' ? chosen : TROUPE_DEFAULT_MODEL_PATH;
}

Model::Model(std::unique_ptr<mjModel, Deleter> model, std::string path)
    : model_(std::move(model)), without_actuation_(*model_), path_(std::move(path)) {
  without_actuation_.opt.disableflags |= mjDSBL_ACTUATION;
}

Result<std::shared_ptr<const Model>> Model::load(std::string_view file) {
  // Weak references: the models of a process that stopped stepping go away.
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<const Model>> compiled;

  const std::string path = (std::filesystem::path(model_directory()) / file).string();
  const std::lock_guard lock(mutex);
  if (std::shared_ptr<const Model> model = compiled[path].lock()) return model;
  Result<std::shared_ptr<const Model>> model = compile(path);
  if (model) compiled[path] = *model;
  return model;
}

Result<std::shared_ptr<const Model>> Model::compile(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored))
    return fail(
        ErrorCode::kNotFound,
        "the model file " + path +
            " does not exist; install the Python package dm-control (./troupe setup), or set "
            "TROUPE_MODEL_PATH to the folder that holds its suite/*.xml");
  install_log_handler();
  char error[1024] = "";
  const std::unique_ptr<mjSpec, SpecDeleter> spec(
      mj_parseXML(path.c_str(), nullptr, error, sizeof error));
  if (!spec) return fail(ErrorCode::kInvalidArgument, "MuJoCo cannot read " + path + ": " + error);
  shrink_textures(spec.get());
  std::unique_ptr<mjModel, Deleter> model(mj_compile(spec.get(), nullptr));
  if (!model)
    return fail(ErrorCode::kInvalidArgument,
                "MuJoCo cannot compile " + path + ": " + mjs_getError(spec.get()));
  return std::shared_ptr<const Model>(new Model(std::move(model), path));
}

Result<int> Model::id(mjtObj type, const char* name) const {
  const int id = mj_name2id(model_.get(), type, name);
  if (id < 0)
    return fail(ErrorCode::kNotFound, path_ + " has no " + mju_type2Str(type) + " named '" + name +
                                          "'; is dm-control a supported version?");
  return id;
}

ActionSpec Model::action_spec() const {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  ActionSpec action;
  for (int i = 0; i < model_->nu; ++i) {
    const bool limited = model_->actuator_ctrllimited[i];
    action.low.push_back(limited ? model_->actuator_ctrlrange[2 * i] : -kInfinity);
    action.high.push_back(limited ? model_->actuator_ctrlrange[2 * i + 1] : kInfinity);
  }
  return action;
}

}  // namespace troupe::envs::mujoco
