// `troupe deploy`: ready scripts and manifests for clusters.
#include "actors/cli/deploy.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <memory>

#include "actors/cli/verbs.hpp"
#include "actors/cli/versions.hpp"
#include "actors/config/checks.hpp"
#include "actors/config/memory.hpp"
#include "actors/config/printer.hpp"
#include "actors/roles/topology.hpp"
#include "actors/runtime/addresses.hpp"
#include "envs/registry.hpp"

namespace troupe::actors::cli {
namespace {

constexpr double kMebibyte = 1 << 20;
constexpr double kProcessMib = 160;         // program, libraries and a simulator
constexpr double kLearnerMib = 600;         // the learning library on top
constexpr std::size_t kLongestName = 40;    // leaves room for what Kubernetes appends
constexpr std::int64_t kPictureMib = 4096;  // where the sets decide

struct Command {
  std::string config;
  std::vector<std::string> overrides;
  DeployPlan plan;
  std::int64_t cores = 0, memory_mib = 0;  // 0: from the configuration
};

std::string name_of(const std::string& config) {
  std::string name;
  for (const char c : std::filesystem::path(config).stem().string())
    name += std::isalnum(static_cast<unsigned char>(c)) != 0
                ? static_cast<char>(std::tolower(static_cast<unsigned char>(c)))
                : '-';
  while (!name.empty() && (name.front() == '-' || std::isdigit(name.front()) != 0))
    name.erase(0, 1);
  name.resize(std::min(name.size(), kLongestName));
  while (!name.empty() && name.back() == '-') name.pop_back();
  return name.empty() ? "run" : name;
}

std::int64_t divided(double whole, std::int64_t parts) {
  return std::max<std::int64_t>(1,
                                static_cast<std::int64_t>((whole + static_cast<double>(parts) - 1) /
                                                          static_cast<double>(parts)));
}

// A thread for each node, and the learners' own.
double cores_of(const RunOptions& options) {
  double cores = 1;  // coordinator and hub
  for (const NodePlan& node : plan_topology(options))
    cores += node.role == "learner" ? static_cast<double>(options.learners.learner.threads *
                                                          options.learners.learner.replicas)
                                    : 1;
  return cores;
}

Result<double> memory_of(const RunOptions& options) {
  double mib = 0;
  for (const NodePlan& node : plan_topology(options))
    mib += kProcessMib + (node.role == "learner" ? kLearnerMib : 0);
  if (learns_from_pictures(options)) return mib + kPictureMib;
  const EnvironmentOptions& environment = options.environment;
  const auto env = envs::make_env(environment.name, {.time_limit = environment.time_limit});
  if (!env) return tl::unexpected(env.error());
  for (const MemoryTerm& term : memory_terms(options, (*env)->spec()))
    mib += term.bytes / kMebibyte;
  return mib;
}

Result<DeployPlan> plan_of(const Command& command) {
  const auto config = load_config(command.config, command.overrides);
  if (!config) return tl::unexpected(config.error());
  const RunOptions& options = config->options;
  DeployPlan plan = command.plan;
  if (plan.name.empty()) plan.name = name_of(command.config);
  plan.config_path = command.config;
  plan.config = print_yaml(options);
  plan.grace = std::chrono::ceil<std::chrono::seconds>(options.stop.grace);
  plan.wall_time = std::chrono::ceil<std::chrono::seconds>(options.stop.wall_time);
  plan.secured_telemetry = !is_loopback(options.telemetry.endpoint);
  const auto memory = memory_of(options);
  if (!memory) return tl::unexpected(memory.error());
  plan.cores = command.cores > 0 ? command.cores : divided(cores_of(options), plan.hosts);
  // Any host may hold all tables: roles go where there is room.
  plan.memory_mib = command.memory_mib > 0 ? command.memory_mib : divided(*memory * 1.25, 1);
  return plan;
}

int deploy(const Command& command, bool slurm) {
  const auto plan = plan_of(command);
  if (!plan) return refuse(plan.error());
  const Result<std::string> text =
      slurm ? Result<std::string>(slurm_script(*plan)) : kubernetes_manifest(*plan);
  if (!text) return refuse(text.error());
  std::fputs(text->c_str(), stdout);
  if (plan->hosts > 1)
    std::fprintf(stderr,
                 "troupe deploy: hosts that join call `troupe join`, which this version does not "
                 "have yet\n");
  return std::fflush(stdout) == 0 ? 0 : 1;
}

std::shared_ptr<Command> add_common(CLI::App& verb) {
  auto command = std::make_shared<Command>();
  command->plan.certificates = "certificates";
  verb.add_option("CONFIG", command->config, "Configuration file")->required();
  add_overrides(verb, command->overrides);
  verb.add_option("--name", command->plan.name, "Name of the run; default: the configuration's")
      ->check([](const std::string& name) {
        return name == name_of(name) ? std::string()
                                     : "lower case letters, digits and dashes, at most 40";
      });
  verb.add_option("--hosts", command->plan.hosts, "Hosts, the coordinator's included; default: 2")
      ->check(CLI::Range(1, 4096));
  verb.add_option("--cores", command->cores,
                  "Cores of each host; default: a share of one for each node and the learners' "
                  "threads")
      ->check(CLI::Range(1, 4096));
  verb.add_option("--memory", command->memory_mib,
                  "MiB of each host; default: all data of the run and its processes")
      ->check(CLI::Range(64, 1 << 24));
  verb.add_option("--port", command->plan.port, "Where hosts join; default: 7700")
      ->check(CLI::Range(1, 65535));
  verb.add_option("--certificates", command->plan.certificates,
                  "Folder with the bundles head and worker; default: certificates")
      ->type_name("DIR");
  return command;
}

}  // namespace

void add_deploy(CLI::App& program, int& exit_code) {
  CLI::App* verb =
      program.add_subcommand("deploy", "Print a script or manifest that runs on a cluster");
  verb->require_subcommand(1);
  verb->footer(
      "Resources follow the configuration, the time to save and stop is stop.grace. What is\n"
      "printed says at its top which certificates it needs.\n"
      "Example: troupe deploy slurm configs/cheetah_run.yaml --hosts 4 > job.sh\n"
      "         troupe deploy kubernetes configs/cheetah_run.yaml --image registry/troupe:1");

  CLI::App* slurm = verb->add_subcommand("slurm", "An array job for sbatch");
  slurm->footer(
      "The first task runs the coordinator, the others join it. All see one folder with the run.\n"
      "Example: troupe deploy slurm configs/cheetah_run.yaml --hosts 4 > job.sh && sbatch job.sh");
  const auto job = add_common(*slurm);
  slurm->add_option("--partition", job->plan.partition, "Partition; default: the cluster's own");
  slurm->callback([job, &exit_code] { exit_code = deploy(*job, true); });

  CLI::App* kubernetes = verb->add_subcommand("kubernetes", "A manifest for kubectl apply");
  kubernetes->footer(
      "A StatefulSet runs the coordinator, a Deployment the hosts that join; scale the latter.\n"
      "Example: troupe deploy kubernetes configs/cheetah_run.yaml --hosts 4 > run.yaml");
  const auto pods = add_common(*kubernetes);
  pods->plan.image = "troupe:" + library_versions().at("troupe");
  kubernetes->add_option("--image", pods->plan.image,
                         "Container image with troupe on its PATH; default: " + pods->plan.image);
  kubernetes
      ->add_option("--storage", pods->plan.storage_gib, "GiB of the run's volume; default: 20")
      ->check(CLI::Range(1, 1 << 20));
  kubernetes->add_flag("--with-secrets", pods->plan.with_secrets,
                       "Print the certificates too, instead of the commands that store them");
  kubernetes->callback([pods, &exit_code] { exit_code = deploy(*pods, false); });
}

}  // namespace troupe::actors::cli
