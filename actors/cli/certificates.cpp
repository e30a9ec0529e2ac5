// `troupe certificates`: a cluster's own authority, and what it issues to hosts.
#include "actors/runtime/certificates.hpp"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>

#include "actors/cli/verbs.hpp"
#include "actors/roles/cluster_security.hpp"
#include "actors/runtime/addresses.hpp"

namespace troupe::actors::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::int64_t kDaySeconds = 86400;
constexpr int kSoonDays = 14;  // before the end, when a warning is due

struct Command {
  fs::path folder = "certificates", output{};
  std::string cluster = "troupe";
  std::int64_t days = 0;
  bool json = false;
  CertificateRequest request{.name = {}, .addresses = {}};
};

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

int init(const Command& command) {
  const auto made = init_authority(command.folder, command.cluster,
                                   std::chrono::seconds(command.days * kDaySeconds));
  if (!made) return refuse(made.error());
  std::printf(
      "made the authority of the cluster %s in %s\n"
      "Keep that folder on one host; every host gets its own from troupe certificates issue.\n",
      command.cluster.c_str(), command.folder.c_str());
  return 0;
}

int issue(Command command) {
  if (command.output.empty()) command.output = command.folder / command.request.name;
  command.request.lasts = std::chrono::seconds(command.days * kDaySeconds);
  const auto made = issue_certificate(command.folder, command.request, command.output);
  if (!made) return refuse(made.error());
  std::printf(
      "issued %s to %s, for %ld days\nCopy it to that host so that nobody else can read it, for "
      "instance: scp -pr %s HOST:\n",
      command.output.c_str(), command.request.name.c_str(), static_cast<long>(command.days),
      command.output.c_str());
  return 0;
}

// Every certificate of an authority's folder, or the one of a bundle.
Result<std::vector<fs::path>> certificates_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code ignored;
  if (fs::exists(folder / kCertificateFile, ignored)) return std::vector{folder / kCertificateFile};
  if (fs::exists(folder / kAuthorityFile, ignored)) found.push_back(folder / kAuthorityFile);
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (fs::exists(entry.path() / kCertificateFile, ignored))
      found.push_back(entry.path() / kCertificateFile);
  if (found.empty())
    return fail(ErrorCode::kNotFound, folder.string() +
                                          " holds no certificates; troupe certificates init makes "
                                          "an authority there");
  std::sort(found.begin(), found.end());
  return found;
}

Json to_json(const fs::path& file, const CertificateInfo& info, std::int64_t now) {
  return {{"file", file.string()},
          {"name", info.name},
          {"authority", info.authority},
          {"roles", info.roles},
          {"addresses", info.addresses},
          {"not_before", info.not_before},
          {"not_after", info.not_after},
          {"days_left", (info.not_after - now) / kDaySeconds},
          {"valid", now <= info.not_after && now >= info.not_before},
          {"fingerprint", info.fingerprint}};
}

void print(const fs::path& file, const CertificateInfo& info, std::int64_t now) {
  std::printf("%s\n  name         %s\n", file.c_str(), info.name.c_str());
  if (file.filename() != kAuthorityFile)
    std::printf("  roles        %s\n  addresses    %s\n  authority    %s\n",
                joined(info.roles).c_str(), joined(info.addresses).c_str(), info.authority.c_str());
  const std::int64_t left = info.not_after - now;
  std::printf("  valid until  %s%s\n  fingerprint  %s\n", utc_time(info.not_after).c_str(),
              left < 0                         ? "  EXPIRED"
              : left < kSoonDays * kDaySeconds ? "  soon over: issue a new one"
                                               : "",
              info.fingerprint.c_str());
}

int show(const Command& command) {
  const auto files = certificates_in(command.folder);
  if (!files) return refuse(files.error());
  const auto now = static_cast<std::int64_t>(std::time(nullptr));
  Json all = Json::array();
  for (const fs::path& file : *files) {
    const auto info = read_certificate(file);
    if (!info) return refuse(info.error());
    if (command.json)
      all.push_back(to_json(file, *info, now));
    else
      print(file, *info, now);
  }
  if (command.json) std::printf("%s\n", Json{{"certificates", all}}.dump().c_str());
  return 0;
}

int test(const std::string& address, const fs::path& bundle) {
  const auto relay = parse_host_port(address);
  if (!relay || relay->port == 0) {
    print_error("'" + address + "' is not HOST:PORT");
    return 2;
  }
  const auto security = use_certificates(bundle.string());
  if (!security) return refuse(security.error());
  if (auto let_in = probe_relay(dialer_options(relay->host, relay->port, *security)); !let_in) {
    print_error(let_in.error().message);
    return 1;
  }
  std::printf("%s lets %s in\n", address.c_str(), security->tls->own().name.c_str());
  return 0;
}

void add_folder(CLI::App& verb, Command& command) {
  verb.add_option("DIR", command.folder, "Folder; default: certificates");
}

void add_days(CLI::App& verb, Command& command, std::int64_t days) {
  command.days = days;
  verb.add_option("--days", command.days, "How long it is valid; default: " + std::to_string(days))
      ->type_name("DAYS")
      ->check(CLI::Range(1, 36500));
}

}  // namespace

void add_certificates(CLI::App& program, int& exit_code) {
  CLI::App* verb = program.add_subcommand(
      "certificates", "Make a cluster's own authority, and certificates for its hosts");
  verb->require_subcommand(1);
  verb->footer(
      "Roles: coordinator, others may join a run there; worker, may join runs; control, may "
      "scale,\n"
      "drain and stop runs from elsewhere; watch, may read telemetry.\n"
      "Example: troupe certificates init certificates\n"
      "         troupe certificates issue certificates head --address 10.0.0.1 --role coordinator\n"
      "         troupe certificates issue certificates node-1 --role worker\n"
      "         troupe certificates issue certificates desk --role watch --role control");

  CLI::App* init_verb = verb->add_subcommand("init", "Make an authority and the cluster's keys");
  init_verb->footer("Example: troupe certificates init certificates --cluster lab");
  const auto init_command = std::make_shared<Command>();
  add_folder(*init_verb, *init_command);
  init_verb->add_option("--cluster", init_command->cluster, "Its name; default: troupe");
  add_days(*init_verb, *init_command, 3650);
  init_verb->callback([init_command, &exit_code] { exit_code = init(*init_command); });

  CLI::App* issue_verb = verb->add_subcommand("issue", "Make a host's folder, to be copied there");
  issue_verb->footer(
      "Example: troupe certificates issue certificates head --address 10.0.0.1 --role coordinator");
  const auto issue_command = std::make_shared<Command>();
  issue_command->request.roles.clear();
  issue_verb->add_option("DIR", issue_command->folder, "The authority's folder")->required();
  issue_verb->add_option("NAME", issue_command->request.name, "The host's name")->required();
  issue_verb
      ->add_option("--address", issue_command->request.addresses,
                   "DNS name or numeric address that others reach it at; may be repeated; default: "
                   "the name")
      ->type_name("ADDRESS")
      ->allow_extra_args(false);
  issue_verb
      ->add_option("--role", issue_command->request.roles,
                   "coordinator, worker, control or watch; may be repeated; default: worker")
      ->type_name("ROLE")
      ->allow_extra_args(false);
  issue_verb->add_option("--output", issue_command->output, "Folder to make; default: DIR/NAME")
      ->type_name("DIR");
  add_days(*issue_verb, *issue_command, 365);
  issue_verb->callback([issue_command, &exit_code] {
    if (issue_command->request.roles.empty()) issue_command->request.roles = {kWorkerRole};
    exit_code = issue(*issue_command);
  });

  CLI::App* show_verb = verb->add_subcommand("show", "Say what an authority has issued");
  show_verb->footer("Example: troupe certificates show certificates --json");
  const auto show_command = std::make_shared<Command>();
  add_folder(*show_verb, *show_command);
  show_verb->add_flag("--json", show_command->json, "One JSON object");
  show_verb->callback([show_command, &exit_code] { exit_code = show(*show_command); });

  CLI::App* test_verb =
      verb->add_subcommand("test", "Ask a run whether it lets this host in, and why not");
  test_verb->footer("Example: troupe certificates test 10.0.0.1:7700 certificates/node-1");
  const auto address = std::make_shared<std::string>();
  const auto bundle = std::make_shared<fs::path>();
  test_verb->add_option("ADDRESS", *address, "HOST:PORT where hosts join the run")->required();
  test_verb->add_option("DIR", *bundle, "Folder of this host's certificate")->required();
  test_verb->callback([address, bundle, &exit_code] { exit_code = test(*address, *bundle); });
}

}  // namespace troupe::actors::cli
