// What a client or a file may declare, and how each mistake is named.
#include "actors/service/table_request.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "replay/selector.hpp"
#include "replay/table.hpp"

namespace troupe::actors {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr std::uint64_t kRow = 1 << 20;

json good() {
  return {{"name", "t"},
          {"observation", {{{"name", "o"}, {"dtype", "f32"}, {"shape", {17}}}}},
          {"step", {{{"name", "action"}, {"dtype", "f32"}, {"shape", {6}}}}},
          {"options", {{"capacity", 10}, {"n_step", 5}, {"min_size", 2}, {"items", "sequence"}}}};
}

std::string refusal(const json& request) {
  const auto read = read_table_request(request, kRow);
  return read ? "" : read.error().message;
}

TEST(TableRequest, EveryPartArrives) {
  const auto read = read_table_request(good(), kRow);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(read->declares);
  EXPECT_EQ(read->signature.observation, (std::vector<Column>{{"o", DType::kF32, {17}}}));
  EXPECT_EQ(read->signature.step, (std::vector<Column>{{"action", DType::kF32, {6}}}));
  EXPECT_EQ(read->options.capacity, 10);
  EXPECT_EQ(read->options.limiter.min_size, 2);
  EXPECT_EQ(read->options.items.kind, replay::ItemShape::Kind::kSequence);
  EXPECT_EQ(step_bytes(read->signature), 17 * 4 + 6 * 4 + 4U);
}

TEST(TableRequest, WhatIsWrittenReadsBackTheSame) {
  const auto first = read_table_request(good(), kRow);
  ASSERT_TRUE(first);
  const json again{{"name", "t"},
                   {"observation", columns_json(first->signature.observation)},
                   {"step", columns_json(first->signature.step)},
                   {"options", options_json(first->options)}};
  const auto second = read_table_request(again, kRow);
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(second->signature, first->signature);
  EXPECT_EQ(options_json(second->options), options_json(first->options));
}

TEST(TableRequest, AQueueOrStackNeedsOnlyItsSize) {
  for (const auto& [word, kind, selector] :
       {std::tuple{"queue", replay::LimiterKind::kQueue, replay::kFifo},
        std::tuple{"stack", replay::LimiterKind::kStack, replay::kLifo}}) {
    json request = good();
    request["options"] = {{"capacity", 64}, {"limiter", word}};
    const auto read = read_table_request(request, kRow);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->options.limiter.kind, kind);
    EXPECT_EQ(read->options.limiter.size, 64);
    EXPECT_EQ(read->options.selector, selector);
    EXPECT_TRUE(replay::Table::create(read->options, read->signature));
    request["options"] = options_json(read->options);
    const auto again = read_table_request(request, kRow);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->options.limiter, read->options.limiter);
    EXPECT_EQ(options_json(again->options), options_json(read->options));
    // What contradicts it is refused, and named, when the table is made.
    request["options"]["samples_per_insert"] = 8;
    request["options"]["error_buffer"] = 100;
    const auto contradiction = read_table_request(request, kRow);
    ASSERT_TRUE(contradiction);
    const auto refused = replay::Table::create(contradiction->options, contradiction->signature);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr(word));
  }
  json request = good();
  request["options"]["limiter"] = "heap";
  EXPECT_THAT(refusal(request), HasSubstr("options.limiter"));
}

TEST(TableRequest, ColumnsMayBePackedAndStacked) {
  json request = good();
  request["options"]["compression"] = {{"o", "lz4"}, {"action", "none"}};
  request["options"]["frame_stack"] = {{"o", 3U}};
  const auto read = read_table_request(request, kRow);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->options.compression.at("o"), replay::Compression::kLz4);
  EXPECT_EQ(read->options.compression.at("action"), replay::Compression::kNone);
  EXPECT_EQ(read->signature.stack(0), 3U);
  EXPECT_EQ(options_json(read->options)["compression"]["o"], "lz4");
  // Columns are others when they are stacked; a stack of one is none.
  const auto plain = read_table_request(good(), kRow);
  EXPECT_NE(read->signature.spec_hash, plain->signature.spec_hash);
  request["options"]["frame_stack"] = {{"o", 1U}};
  EXPECT_EQ(read_table_request(request, kRow)->signature, plain->signature);
  request["options"]["frame_stack"] = {{"action", 2U}};
  EXPECT_THAT(refusal(request), HasSubstr("'action'"));
  request["options"]["frame_stack"] = {{"o", "many"}};
  EXPECT_THAT(refusal(request), HasSubstr("frame_stack.o"));
  request["options"]["frame_stack"] = 3;
  EXPECT_THAT(refusal(request), HasSubstr("frame_stack"));
  request = good();
  request["options"]["compression"] = {{"o", "gzip"}};
  EXPECT_THAT(refusal(request), HasSubstr("compression"));
}

TEST(TableRequest, AnUnknownKeyIsNamedAtEveryLevel) {
  json request = good();
  request["colour"] = 1;
  EXPECT_THAT(refusal(request), HasSubstr("'colour'"));
  request = good();
  request["options"]["capasity"] = 1;
  EXPECT_THAT(refusal(request), HasSubstr("'capasity'"));
  request = good();
  request["observation"][0]["type"] = "f32";
  EXPECT_THAT(refusal(request), HasSubstr("observation[0] has the unknown key 'type'"));
}

TEST(TableRequest, ValuesOfTheWrongTypeOrOutOfRangeAreNamed) {
  for (const json& value : {json("many"), json(1.5), json(18446744073709551615U), json(nullptr)}) {
    json request = good();
    request["options"]["capacity"] = value;
    EXPECT_THAT(refusal(request), HasSubstr("options.capacity")) << value;
  }
  json request = good();
  request["options"]["items"] = "none";
  EXPECT_THAT(refusal(request), HasSubstr("options.items"));
  request = good();
  request["observation"][0]["dtype"] = "f16";
  EXPECT_THAT(refusal(request), HasSubstr("observation[0].dtype"));
}

TEST(TableRequest, ShapesCannotOverflowOrExceedTheLargestStep) {
  for (const json& shape : {json{std::int64_t{1} << 40, std::int64_t{1} << 40}, json{0}, json{-1},
                            json{kRow}, json{1, 1, 1, 1, 1, 1, 1, 1, 1}, json("x")}) {
    json request = good();
    request["observation"][0]["shape"] = shape;
    EXPECT_THAT(refusal(request), HasSubstr("shape")) << shape;
  }
  json request = good();
  for (int i = 0; i < 3; ++i)
    request["observation"][i] = {
        {"name", "o" + std::to_string(i)}, {"dtype", "u8"}, {"shape", {kRow / 2}}};
  EXPECT_THAT(refusal(request), HasSubstr("more than 1048576"));
}

TEST(TableRequest, NamesThatWouldCollideInABatchAreRefused) {
  for (const char* name : {"reward", "discount", "weight", "o", "next_o"}) {
    json request = good();
    request["step"][0]["name"] = name;
    EXPECT_THAT(refusal(request), HasSubstr("two columns")) << name;
  }
}

TEST(TableRequest, ATableNameCannotLeaveItsDirectory) {
  for (const char* name : {"", ".", "../x", "a/b", "a b", ".hidden"}) {
    json request = good();
    request["name"] = name;
    EXPECT_THAT(refusal(request), HasSubstr("name")) << name;
  }
}

}  // namespace
}  // namespace troupe::actors
