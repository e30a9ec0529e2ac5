// Headers, and where a batch's parts lie.
#include "actors/service/protocol.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "replay/bytes.hpp"

namespace troupe::actors {
namespace {

ChannelServer::Received message(std::uint8_t kind, std::uint32_t magic, std::uint16_t version,
                                std::size_t cut = kServiceHeader + 1) {
  Bytes bytes;
  replay::ByteWriter out(bytes);
  out.put(magic);
  out.put(version);
  out.put(std::uint16_t{0});
  out.put(std::uint64_t{77});
  out.put(std::uint8_t{5});
  bytes.resize(cut);
  return {"peer", {kind, std::make_shared<const Bytes>(std::move(bytes))}};
}

TEST(Protocol, AGoodHeaderGivesPeerNumberKindAndBody) {
  Request request;
  std::span<const std::uint8_t> body;
  const auto received = message(4, kServiceMagic, kServiceVersion);
  EXPECT_FALSE(read_request(received, request, body));
  EXPECT_EQ(request.peer, "peer");
  EXPECT_EQ(request.id, 77U);
  EXPECT_EQ(request.kind, ServiceKind::kSample);
  ASSERT_EQ(body.size(), 1U);
  EXPECT_EQ(body[0], 5);
}

TEST(Protocol, EveryOtherHeaderIsRefusedWithItsReason) {
  Request request;
  std::span<const std::uint8_t> body;
  const auto code = [&](const ChannelServer::Received& received) {
    const auto failure = read_request(received, request, body);
    return failure ? failure->code : ServiceErrorCode{};
  };
  EXPECT_EQ(code(message(4, 1, kServiceVersion)), ServiceErrorCode::kMalformed);
  EXPECT_EQ(request.id, 0U);
  EXPECT_EQ(code(message(4, kServiceMagic, 2)), ServiceErrorCode::kVersion);
  EXPECT_EQ(request.id, 77U);
  for (const int kind : {0, 10, 128, 255})
    EXPECT_EQ(code(message(static_cast<std::uint8_t>(kind), kServiceMagic, kServiceVersion)),
              ServiceErrorCode::kMalformed)
        << kind;
  for (std::size_t cut = 0; cut < kServiceHeader; ++cut)
    EXPECT_EQ(code(message(4, kServiceMagic, kServiceVersion, cut)), ServiceErrorCode::kMalformed)
        << cut;
}

TEST(Protocol, TheLayoutIsThatOfABatchInThePayload) {
  const std::vector<Column> columns{{"a", DType::kU8, {5}}, {"b", DType::kF64, {}}};
  const BatchLayout layout = batch_layout(columns, 100);
  Bytes payload(layout.bytes);
  replay::Batch batch(columns, 100, std::span(payload).subspan(kBatchHead));
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(batch.bytes(i).data(), payload.data() + layout.columns[static_cast<std::size_t>(i)]);
  EXPECT_EQ(layout.columns, (std::vector<std::uint64_t>{64, 64 + 512}));
  EXPECT_EQ(layout.keys, 64 + 512 + 832U);
  EXPECT_EQ(layout.versions, layout.keys + 1600);
  EXPECT_EQ(layout.bytes, layout.versions + 800);
  batch.keys[99].slot = 7;
  batch.versions[99] = 8;
  finish_batch({"peer", 9, ServiceKind::kSample}, layout, batch, payload);
  std::uint64_t version = 0;
  std::memcpy(&version, payload.data() + layout.bytes - 8, 8);
  EXPECT_EQ(version, 8U);
}

}  // namespace
}  // namespace troupe::actors
