// What the channel tests share: payloads, results that must be there, and patience with a bound.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>

#include "actors/runtime/channel.hpp"

namespace troupe::actors {

using namespace std::chrono_literals;

constexpr auto kPatience = 20s;

inline std::shared_ptr<const Bytes> bytes(std::size_t size, std::uint8_t value = 7) {
  return std::make_shared<const Bytes>(size, value);
}

template <class T>
T take(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

// Until `attempt` succeeds; a deadline only bounds a failing test.
inline bool eventually(const std::function<bool()>& attempt) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < deadline) {
    if (attempt()) return true;
    std::this_thread::sleep_for(1ms);
  }
  return false;
}

}  // namespace troupe::actors
