// What the parts of the scaling benchmark share: work in children that begin together, and what
// their times say.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "envs/spec/result.hpp"
#include "learners/replicas/local_processes.hpp"

namespace troupe::learners {

using Json = nlohmann::ordered_json;
using Milliseconds = std::chrono::duration<double, std::milli>;

// The speed-up of so many replicas, R = T_O / T_C.
inline double lemma(double replicas, double overhead) {
  return replicas * (1 + overhead) / (1 + replicas * overhead);
}

template <class T>
void check(const Result<T>& result) {
  if (!result) throw std::runtime_error(result.error().message);
}

// Milliseconds of `step`, the middle of `steps` after some that do not count.
template <class Step>
double median_time(int steps, Step step, int uncounted = 3) {
  std::vector<double> times;
  for (int i = -uncounted; i < steps; ++i) {
    const auto start = std::chrono::steady_clock::now();
    step();
    const Milliseconds spent = std::chrono::steady_clock::now() - start;
    if (i >= 0) times.push_back(spent.count());
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

using Work = std::function<double(int index, const std::shared_ptr<RequestLink>& link)>;

// The longest of what the works of `count` children return, which begin together.
inline double in_children(int count, const Work& work) {
  const auto table = std::make_shared<RendezvousTable>();
  const auto ended = run_local_processes(
      count,
      [&](int index, std::shared_ptr<RequestLink> link) {
        RendezvousClient client(link, "scaling/", std::chrono::seconds(30));
        for (auto here = client.add("here", 1); here && *here < count; here = client.add("here", 0))
          std::this_thread::sleep_for(Milliseconds(1));
        const std::string time = std::to_string(work(index, link));
        return client.set("time" + std::to_string(index), {time.begin(), time.end()}) ? 0 : 1;
      },
      {.answer = [&](std::span<const std::uint8_t> request) { return table->handle(request); }});
  double longest = 0;
  RendezvousClient client(make_local_link(table), "scaling/", std::chrono::seconds(1));
  for (int index = 0; index < count; ++index) {
    if (!ended[static_cast<std::size_t>(index)].clean()) throw std::runtime_error("a child failed");
    const auto time = client.get("time" + std::to_string(index), std::chrono::seconds(1));
    check(time);
    longest = std::max(longest, std::stod(std::string(time->begin(), time->end())));
  }
  return longest;
}

// Milliseconds by name, a value for each round.
using Times = std::map<std::string, std::vector<double>>;

inline double middle(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Of each round times.at(one) / times.at(two) * work: how much more is done in the same time.
inline Json gain(const Times& times, const std::string& one, const std::string& two, double work) {
  std::vector<double> gains;
  for (std::size_t round = 0; round < times.at(one).size(); ++round)
    gains.push_back(work * times.at(one)[round] / times.at(two)[round]);
  std::sort(gains.begin(), gains.end());
  return {{"step_ms", middle(times.at(two))},
          {"min", gains.front()},
          {"speed_up", middle(gains)},
          {"max", gains.back()},
          {"efficiency", middle(gains) / 2}};
}

// The gain of `two` over `one` as a share of that of the list that two processes run over the list
// of one, of each round, the middle.
inline double share_of(const Times& times, const std::string& one, const std::string& two,
                       const std::string& list, const std::string& list_twice) {
  std::vector<double> shares;
  for (std::size_t round = 0; round < times.at(one).size(); ++round)
    shares.push_back(times.at(one)[round] / times.at(two)[round] * times.at(list_twice)[round] /
                     times.at(list)[round]);
  return middle(shares);
}

}  // namespace troupe::learners
