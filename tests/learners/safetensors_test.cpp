// The safetensors format: round trip, the layout of the published format, and refusal of damaged
// headers.
#include "learners/safetensors.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string_view>

namespace troupe::learners {
namespace {

template <class T>
std::span<const std::uint8_t> raw(const std::vector<T>& values) {
  return {reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(T)};
}

std::vector<std::uint8_t> file(std::string_view header, std::size_t data) {
  std::vector<std::uint8_t> bytes(8);
  const std::uint64_t length = header.size();
  std::memcpy(bytes.data(), &length, 8);
  bytes.insert(bytes.end(), header.begin(), header.end());
  bytes.resize(bytes.size() + data);
  return bytes;
}

TEST(SafeTensors, SurviveARoundTrip) {
  const std::vector<float> a = {1, 2, 3, 4, 5, 6};
  const std::vector<double> b = {0.1};
  const auto decoded = SafeTensors::decode(
      encode_safetensors({{"a", {DType::kF32, {2, 3}, raw(a)}}, {"b", {DType::kF64, {}, raw(b)}}}),
      "file");
  ASSERT_TRUE(decoded) << decoded.error().message;
  std::vector<float> a2(6);
  std::vector<double> b2(1);
  ASSERT_TRUE(decoded->copy("a", {2, 3}, a2));
  ASSERT_TRUE(decoded->copy("b", {}, b2));
  EXPECT_EQ(a2, a);
  EXPECT_EQ(b2, b);
  EXPECT_FALSE(decoded->copy("a", {3, 2}, a2));
  EXPECT_FALSE(decoded->copy("c", {2, 3}, a2));
}

TEST(SafeTensors, ReadAFileAsThePublishedFormatWritesIt) {
  const auto decoded = SafeTensors::decode(
      file(R"({"__metadata__":{"k":"v"},"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}  )",
           8),
      "file");
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(decoded->tensors().size(), 1U);
  EXPECT_EQ(decoded->tensors().at("x").shape, (std::vector<std::int64_t>{2}));
}

TEST(SafeTensors, RefuseHeadersThatDoNotFit) {
  const char* bad[] = {
      "[]",
      "{",
      R"({"x":3})",
      R"({"x":{"dtype":"F99","shape":[2],"data_offsets":[0,8]}})",
      R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,16]}})",
      R"({"x":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})",
      R"({"x":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})",
      R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
      R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[8,4]}})",
      R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
      R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"y":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
      R"({"x":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})",
  };
  for (const char* header : bad) {
    const auto decoded = SafeTensors::decode(file(header, 8), "some/file");
    ASSERT_FALSE(decoded) << header;
    EXPECT_NE(decoded.error().message.find("some/file"), std::string::npos);
  }
}

TEST(SafeTensors, RefuseEveryTruncation) {
  const std::vector<float> a = {1, 2, 3};
  const std::vector<std::uint8_t> bytes = encode_safetensors({{"a", {DType::kF32, {3}, raw(a)}}});
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(
        SafeTensors::decode({bytes.begin(), bytes.begin() + static_cast<long>(size)}, "f"));
}

}  // namespace
}  // namespace troupe::learners
