// The checksum against the published value.
#include "models/inference/checksum.hpp"

#include <gtest/gtest.h>

#include <string_view>

namespace troupe::models {
namespace {

TEST(Checksum, GivesThePublishedCheckValue) {
  constexpr std::string_view kText = "123456789";
  EXPECT_EQ(checksum({reinterpret_cast<const std::uint8_t*>(kText.data()), kText.size()}),
            0xe3069283U);
}

}  // namespace
}  // namespace troupe::models
