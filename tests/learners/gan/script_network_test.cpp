// Networks of the user's are taken for what they give, and what does not fit is said.
#include "learners/gan/script_network.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>

#include <fstream>

#include "models/torch_precompiled.hpp"
#include "tests/support/temporary_folder.hpp"

namespace troupe::learners {
namespace {

using testing::HasSubstr;

constexpr PictureSpec kPictures{.side = 4, .channels = 2, .classes = 3};

// A file with this body of forward(self, x).
std::string script(const TemporaryFolder& folder, const std::string& body) {
  torch::jit::Module module("Net");
  module.define("def forward(self, x: Tensor):\n    " + body + "\n");
  const std::string file = (folder.path() / "net.pt").string();
  module.save(file);
  return file;
}

std::string refusal(const std::string& body) {
  const TemporaryFolder folder;
  const auto loaded = load_script_network(script(folder, body), kPictures, 1);
  return loaded ? "" : loaded.error().message;
}

TEST(ScriptNetwork, SeesPicturesAsChannelsOfNumbersUpTo255) {
  const TemporaryFolder folder;
  const auto network = load_script_network(
      script(folder, "return (x.mean([2, 3]), x[:, :, 0, 1] - 1)"), kPictures, 1);
  ASSERT_TRUE(network) << network.error().message;
  std::vector<std::uint8_t> pixels(2 * 4 * 4 * 2, 0);
  for (std::size_t i = 0; i < 16; ++i) pixels[2 * i] = 255;  // channel 0 of the first picture
  pixels[2 * 16 + 3] = 16;  // channel 1 of the second, row 0, column 1
  const auto outputs = (*network)->outputs(pixels);
  ASSERT_TRUE(outputs) << outputs.error().message;
  EXPECT_EQ(outputs->count, 2);
  EXPECT_THAT(outputs->features, testing::ElementsAre(255, 0, 0, 1));
  EXPECT_THAT(outputs->logits, testing::ElementsAre(254, -1, -1, 15));
  EXPECT_FALSE((*network)->outputs(std::span(pixels).first(31)));
}

TEST(ScriptNetwork, NeedsNoLogits) {
  const TemporaryFolder folder;
  const auto network = load_script_network(script(folder, "return x.flatten(1)"), kPictures, 1);
  ASSERT_TRUE(network) << network.error().message;
  const auto outputs = (*network)->outputs(std::vector<std::uint8_t>(32, 7));
  ASSERT_TRUE(outputs);
  EXPECT_EQ(outputs->features, std::vector<float>(32, 7));
  EXPECT_TRUE(outputs->logits.empty());
}

TEST(ScriptNetwork, WhatDoesNotFitIsSaid) {
  EXPECT_THAT(refusal("return x"),
              HasSubstr("its features of 2 pictures are [2, 2, 4, 4], not [2, any]"));
  EXPECT_THAT(refusal("return x.mean([2, 3]).sum(0, keepdim=True)"), HasSubstr("are [1, 2]"));
  EXPECT_THAT(refusal("return (x.flatten(1), x.mean([1, 2, 3]))"),
              HasSubstr("its logits of 2 pictures are [2]"));
  EXPECT_THAT(refusal("return x.flatten(1).long()"), HasSubstr("its features are Long, no floats"));
  EXPECT_THAT(refusal("return 1"), HasSubstr("its features are no tensor but Int"));
  EXPECT_THAT(refusal("y = x.flatten(1)\n    return (y, y, y)"), HasSubstr("it gives 3 values"));
  const std::string failed = refusal("return x.view(-1, 7)");
  EXPECT_THAT(failed, HasSubstr("net.pt: it fails on pictures [B, 2, 4, 4]: "));
  EXPECT_EQ(failed.find('\n'), std::string::npos);
}

TEST(ScriptNetwork, AFileThatIsNoneIsNamed) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "other.pt").string();
  const auto missing = load_script_network(file, kPictures, 1);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  std::ofstream(file) << "no archive";
  const auto broken = load_script_network(file, kPictures, 1);
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(broken.error().message, HasSubstr("other.pt is no TorchScript: "));
}

}  // namespace
}  // namespace troupe::learners
