// Finding the learning library at run time, from a program that does not link it.
#include "learners/loader.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/learners/batches.hpp"

namespace troupe::learners {
namespace {

TEST(Loader, SaysWhatIsMissingAndWhere) {
  ::setenv("TROUPE_LEARNERS_LIBRARY", "/nowhere/libtroupe_learners.so", 1);
  const auto factory = load_learning_library();
  ::unsetenv("TROUPE_LEARNERS_LIBRARY");
  ASSERT_FALSE(factory);
  EXPECT_EQ(factory.error().code, ErrorCode::kNotFound);
  EXPECT_NE(factory.error().message.find("/nowhere/libtroupe_learners.so"), std::string::npos);
}

TEST(Loader, SaysWhenAFileIsNoLearningLibrary) {
  ::setenv("TROUPE_LEARNERS_LIBRARY", "/proc/self/cmdline", 1);
  const auto factory = load_learning_library();
  ::unsetenv("TROUPE_LEARNERS_LIBRARY");
  ASSERT_FALSE(factory);
  EXPECT_EQ(factory.error().code, ErrorCode::kUnavailable);
}

TEST(Loader, FindsTheLibraryOfTheBuildAndTrainsWithIt) {
  const auto factory = load_learning_library();
  ASSERT_TRUE(factory) << factory.error().message;
  LearnerContext context;
  context.spec = spec_of(3, 2);
  auto learner = (*factory)("d4pg", small_options(), context);
  ASSERT_TRUE(learner) << learner.error().message;
  Random random(1);
  EXPECT_EQ(update(**learner, random_batch(**learner, random)).version, 1U);
  EXPECT_FALSE((*factory)("sarsa", small_options(), context));
}

}  // namespace
}  // namespace troupe::learners
