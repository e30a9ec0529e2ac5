// `troupe deploy slurm`: an array job. Its first task runs the coordinator, the others join it,
// each as soon as it gets its host; a task that is requeued joins again.
#include <cstdio>
#include <sstream>

#include "actors/cli/deploy.hpp"

namespace troupe::actors::cli {
namespace {

std::string slurm_time(std::chrono::seconds time) {
  const auto seconds = time.count();
  char text[60];
  std::snprintf(text, sizeof text, "%lld-%02lld:%02lld:%02lld",
                static_cast<long long>(seconds / 86400),
                static_cast<long long>(seconds / 3600 % 24),
                static_cast<long long>(seconds / 60 % 60), static_cast<long long>(seconds % 60));
  return text;
}

}  // namespace

std::string shell_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string slurm_script(const DeployPlan& plan) {
  std::ostringstream out;
  out << "#!/bin/bash\n"
      << "#SBATCH --job-name=" << plan.name << "\n"
      << "#SBATCH --array=0-" << plan.hosts - 1 << "\n"
      << "#SBATCH --nodes=1\n"
      << "#SBATCH --ntasks=1\n"
      << "#SBATCH --cpus-per-task=" << plan.cores << "\n"
      << "#SBATCH --mem=" << plan.memory_mib << "M\n"
      << "#SBATCH --output=%x-%a.log\n"
      << "#SBATCH --open-mode=append\n"
      << "#SBATCH --requeue\n"
      << "# The program itself gets SIGTERM this long before the job is killed: it saves and "
         "stops.\n"
      << "#SBATCH --signal=B:TERM@" << plan.grace.count() + 10 << "\n";
  if (!plan.partition.empty()) out << "#SBATCH --partition=" << plan.partition << "\n";
  if (plan.wall_time.count() > 0)
    out << "#SBATCH --time=" << slurm_time(plan.wall_time + plan.grace) << "\n";
  out << "#\n"
      << "# Submit with: sbatch FILE. One folder, seen by every host, holds the run; the\n"
      << "# certificates come from\n"
      << "#   troupe certificates init DIR\n"
      << "#   troupe certificates issue DIR " << kHeadBundle
      << " --role coordinator --address '*.DOMAIN OF THE HOSTS'\n"
      << "#   troupe certificates issue DIR " << kWorkerBundle << "\n"
      << "set -euo pipefail\n\n"
      << "troupe=${TROUPE:-troupe}\n"
      << "config=${TROUPE_CONFIG:-" << shell_quoted(plan.config_path) << "}\n"
      << "run=${TROUPE_RUN:-" << shell_quoted("runs/" + plan.name) << "}\n"
      << "certificates=${TROUPE_CERTIFICATES_DIR:-" << shell_quoted(plan.certificates.string())
      << "}\n"
      << "port=${TROUPE_PORT:-" << plan.port << "}\n"
      << "where=$run.address  # of the coordinator, once it is known\n\n"
      << "if [[ ${SLURM_ARRAY_TASK_ID:-0} == 0 ]]; then\n"
      << "  mkdir -p \"$(dirname \"$run\")\"\n"
      << "  host=$(hostname -f)\n"
      << "  printf '%s\\n' \"$host:$port\" > \"$where.new\"\n"
      << "  mv \"$where.new\" \"$where\"\n"
      << "  export TROUPE_CERTIFICATES=$certificates/" << kHeadBundle << "\n"
      << "  exec \"$troupe\" run \"$config\" --run-directory \"$run\" \\\n"
      << "    --set cluster.listen=\"0.0.0.0:$port\" --set cluster.advertise=\"$host\" \\\n"
      << "    --set cluster.certificates=\"$certificates/" << kHeadBundle << "\"\n"
      << "fi\n\n"
      << "export TROUPE_CERTIFICATES=$certificates/" << kWorkerBundle << "\n"
      << "until [[ -s $where ]] && \"$troupe\" certificates test \"$(cat \"$where\")\" "
         "\"$TROUPE_CERTIFICATES\"; do\n"
      << "  sleep 5\n"
      << "done\n"
      << "exec \"$troupe\" join \"$(cat \"$where\")\"\n";
  return out.str();
}

}  // namespace troupe::actors::cli
