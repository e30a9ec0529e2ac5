#include "actors/config/reader.hpp"
#include <gmock/gmock.h>
#include "tests/actors/config/config_files.hpp"
namespace troupe::actors { namespace {
class ReaderTest : public ConfigFiles {};
TEST_F(ReaderTest, Smoke) {
  auto c = load_config(write("a.yaml", "environment: {name: pendulum}\nd4pg: {learning_rate: 1e-4}\njob: null\n"), {"seed=0"});
  ASSERT_TRUE(c) << c.error().message;
  auto d = load_config(write("b.yaml", "environmet: {name: pendulum}\nd4pg: {learning_rate: \"1e-4\", bach: 3}\nseed: -1\ncheckpoint: {every: 60}\nactors:\n - 1\n"), {"seed=0"});
  std::cout << d.error().message << "\n";
}
} }
