// `troupe deploy kubernetes`: one manifest with the configuration, the coordinator (a StatefulSet
// with a volume for the run, behind a headless Service) and the hosts that join (a Deployment).
// Certificates are Secrets; a first container copies them to where only the run's user reads them.
#include <yaml-cpp/yaml.h>

#include <array>
#include <nlohmann/json.hpp>

#include "actors/cli/deploy.hpp"
#include "actors/runtime/certificates.hpp"
#include "actors/runtime/secret_files.hpp"

namespace troupe::actors::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kBundleFiles{kAuthorityFile, kCertificateFile, kCertificateKey,
                                  kCurvePublicFile, kCurveKey};
constexpr const char* kMounted = "/certificates/own";
constexpr int kUser = 1000;

void emit(YAML::Emitter& out, const Json& value) {
  if (value.is_object()) {
    out << YAML::BeginMap;
    for (const auto& [key, child] : value.items()) {
      out << YAML::Key << key << YAML::Value;
      emit(out, child);
    }
    out << YAML::EndMap;
  } else if (value.is_array()) {
    out << YAML::BeginSeq;
    for (const Json& child : value) emit(out, child);
    out << YAML::EndSeq;
  } else if (value.is_string()) {
    const auto text = value.get<std::string>();
    // Quoted always: "0400" and "on" are strings here.
    if (text.find('\n') == std::string::npos)
      out << YAML::DoubleQuoted << text;
    else
      out << YAML::Literal << text;
  } else if (value.is_boolean()) {
    out << value.get<bool>();
  } else {
    out << value.get<std::int64_t>();
  }
}

std::string document(const Json& value) {
  YAML::Emitter out;
  emit(out, value);
  return std::string("---\n") + out.c_str() + "\n";
}

Json labels(const DeployPlan& plan, const std::string& part) {
  return {{"app.kubernetes.io/name", "troupe"},
          {"app.kubernetes.io/instance", plan.name},
          {"app.kubernetes.io/component", part}};
}

Json metadata(const DeployPlan& plan, const std::string& part) {
  return {{"name", plan.name + "-" + part}, {"labels", labels(plan, part)}};
}

Json exec_probe(const std::vector<std::string>& command) {
  return {{"exec", {{"command", command}}},
          {"initialDelaySeconds", 5},
          {"periodSeconds", 10},
          {"timeoutSeconds", 8},
          {"failureThreshold", 3}};
}

Json container(const DeployPlan& plan, const std::vector<std::string>& arguments) {
  const Json resources{{"cpu", std::to_string(plan.cores)},
                       {"memory", std::to_string(plan.memory_mib) + "Mi"}};
  return {{"name", "troupe"},
          {"image", plan.image},
          {"command", {"troupe"}},
          {"args", arguments},
          {"env", Json::array({{{"name", "TROUPE_CERTIFICATES"}, {"value", kMounted}}})},
          {"resources", {{"requests", resources}, {"limits", resources}}},
          {"securityContext",
           {{"allowPrivilegeEscalation", false}, {"capabilities", {{"drop", {"ALL"}}}}}},
          {"volumeMounts", Json::array({{{"name", "certificates"}, {"mountPath", "/certificates"}},
                                        {{"name", "shm"}, {"mountPath", "/dev/shm"}}})}};
}

// The pod of one container, with its certificates in memory that belong to its user.
Json pod(const DeployPlan& plan, const std::string& part, const std::string& secret,
         const Json& main) {
  const std::string copy =
      std::string("install -d -m 0700 ") + kMounted + " && install -m 0600 /secret/* " + kMounted;
  const Json prepare{
      {"name", "certificates"},
      {"image", plan.image},
      {"command", {"sh", "-c", copy}},
      {"securityContext",
       {{"allowPrivilegeEscalation", false}, {"capabilities", {{"drop", {"ALL"}}}}}},
      {"volumeMounts",
       Json::array({{{"name", "secret"}, {"mountPath", "/secret"}, {"readOnly", true}},
                    {{"name", "certificates"}, {"mountPath", "/certificates"}}})}};
  const Json in_memory{{"medium", "Memory"}};
  return {
      {"metadata", {{"labels", labels(plan, part)}}},
      {"spec",
       {{"terminationGracePeriodSeconds", plan.grace.count() + 10},
        {"automountServiceAccountToken", false},
        {"securityContext",
         {{"runAsNonRoot", true}, {"runAsUser", kUser}, {"runAsGroup", kUser}, {"fsGroup", kUser}}},
        {"initContainers", Json::array({prepare})},
        {"containers", Json::array({main})},
        {"volumes", Json::array({{{"name", "secret"},
                                  {"secret", {{"secretName", secret}, {"defaultMode", 0440}}}},
                                 {{"name", "certificates"}, {"emptyDir", in_memory}},
                                 {{"name", "shm"}, {"emptyDir", in_memory}}})}}}};
}

Json config_map(const DeployPlan& plan) {
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", metadata(plan, "config")},
          {"data", {{"run.yaml", plan.config}}}};
}

Json service(const DeployPlan& plan) {
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata", metadata(plan, kHeadBundle)},
          {"spec",
           {{"clusterIP", "None"},
            {"publishNotReadyAddresses", true},
            {"selector", labels(plan, kHeadBundle)},
            {"ports", Json::array({{{"name", "join"}, {"port", plan.port}}})}}}};
}

Json head(const DeployPlan& plan) {
  Json main =
      container(plan, {"run", "/config/run.yaml", "--run-directory", "/runs/" + plan.name,
                       "--quiet", "--set", "cluster.listen=0.0.0.0:" + std::to_string(plan.port),
                       "--set", "cluster.advertise=" + plan.name + "-" + kHeadBundle, "--set",
                       std::string("cluster.certificates=") + kMounted});
  main["ports"] = Json::array({{{"name", "join"}, {"containerPort", plan.port}}});
  std::vector<std::string> ready{"troupe",           "watch", "--once", "--timeout", "5",
                                 "--runs-directory", "/runs"};
  if (plan.secured_telemetry) ready.insert(ready.end(), {"--certificates", kMounted});
  main["readinessProbe"] = exec_probe(ready);
  main["volumeMounts"].push_back({{"name", "runs"}, {"mountPath", "/runs"}});
  main["volumeMounts"].push_back(
      {{"name", "config"}, {"mountPath", "/config"}, {"readOnly", true}});
  Json template_ = pod(plan, kHeadBundle, plan.name + "-" + kHeadBundle, main);
  template_["spec"]["volumes"].push_back(
      {{"name", "config"}, {"configMap", {{"name", plan.name + "-config"}}}});
  const Json claim{
      {"metadata", {{"name", "runs"}}},
      {"spec",
       {{"accessModes", {"ReadWriteOnce"}},
        {"resources", {{"requests", {{"storage", std::to_string(plan.storage_gib) + "Gi"}}}}}}}};
  return {{"apiVersion", "apps/v1"},
          {"kind", "StatefulSet"},
          {"metadata", metadata(plan, kHeadBundle)},
          {"spec",
           {{"serviceName", plan.name + "-" + kHeadBundle},
            {"replicas", 1},
            {"selector", {{"matchLabels", labels(plan, kHeadBundle)}}},
            {"template", template_},
            {"volumeClaimTemplates", Json::array({claim})}}}};
}

Json workers(const DeployPlan& plan) {
  const std::string where = plan.name + "-" + kHeadBundle + ":" + std::to_string(plan.port);
  Json main = container(plan, {"join", where});
  main["readinessProbe"] = exec_probe({"troupe", "certificates", "test", where, kMounted});
  return {{"apiVersion", "apps/v1"},
          {"kind", "Deployment"},
          {"metadata", metadata(plan, kWorkerBundle)},
          {"spec",
           {{"replicas", plan.hosts - 1},
            {"selector", {{"matchLabels", labels(plan, kWorkerBundle)}}},
            {"template", pod(plan, kWorkerBundle, plan.name + "-" + kWorkerBundle, main)}}}};
}

Result<Json> secret(const DeployPlan& plan, const std::string& bundle) {
  Json data = Json::object();
  for (const char* file : kBundleFiles) {
    const auto path = plan.certificates / bundle / file;
    auto text = std::string_view(file).ends_with(".key") ? read_secret(path) : read_public(path);
    if (!text) return tl::unexpected(text.error());
    data[file] = std::move(*text);
  }
  return Json{{"apiVersion", "v1"},
              {"kind", "Secret"},
              {"metadata", metadata(plan, bundle)},
              {"type", "Opaque"},
              {"stringData", data}};
}

std::string preamble(const DeployPlan& plan) {
  const std::string folder = plan.certificates.string(), name = plan.name;
  std::string text = "# " + plan.config_path + " on Kubernetes: kubectl apply -f FILE\n";
  if (plan.with_secrets) return text + "# Holds private keys: keep it as secret as they are.\n";
  text += "# Needs, once, from the folder of an authority (troupe certificates init " + folder +
          "):\n"
          "#   troupe certificates issue " +
          folder + " " + kHeadBundle + " --role coordinator --address " + name + "-" + kHeadBundle +
          "\n"
          "#   troupe certificates issue " +
          folder + " " + kWorkerBundle + "\n";
  for (const char* bundle : {kHeadBundle, kWorkerBundle})
    text += "#   kubectl create secret generic " + name + "-" + bundle + " --from-file=" + folder +
            "/" + bundle + "\n";
  return text;
}

}  // namespace

Result<std::string> kubernetes_manifest(const DeployPlan& plan) {
  std::string text = preamble(plan) + document(config_map(plan));
  if (plan.with_secrets) {
    for (const char* bundle : {kHeadBundle, kWorkerBundle}) {
      const auto made = secret(plan, bundle);
      if (!made) return tl::unexpected(made.error());
      text += document(*made);
    }
  }
  return text + document(service(plan)) + document(head(plan)) + document(workers(plan));
}

}  // namespace troupe::actors::cli
