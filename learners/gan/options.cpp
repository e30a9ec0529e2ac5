#include "learners/gan/options.hpp"

#include <vector>

namespace troupe::learners {

std::int64_t generator_parameters(const GanOptions& options, const PictureSpec& pictures) {
  const std::int64_t w = options.generator_width;
  const std::vector<std::int64_t> widths =
      pictures.side == 32 ? std::vector<std::int64_t>(4, w)
                          : std::vector<std::int64_t>{16 * w, 16 * w, 8 * w, 4 * w, 2 * w, w};
  const std::int64_t tables = options.conditional ? pictures.classes : 1;
  const auto convolution = [](std::int64_t kernel, std::int64_t in, std::int64_t out) {
    return (kernel * kernel * in + 1) * out;
  };
  std::int64_t count = (options.noise + 1) * 16 * widths.front();  // to 4 x 4 pixels
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    const std::int64_t in = widths[i], out = widths[i + 1];
    count += 2 * tables * (in + out) + convolution(3, in, out) + convolution(3, out, out) +
             convolution(1, in, out);
  }
  return count + 2 * w + convolution(3, w, pictures.channels);
}

Result<void> check(const GanOptions& options, std::int64_t replicas, std::int64_t side) {
  const auto refuse = [](const std::string& what) {
    return fail(ErrorCode::kInvalidArgument, what);
  };
  for (const auto& [name, batch] :
       {std::pair{"batch", options.batch}, std::pair{"generator_batch", options.generator_batch}})
    if (batch % replicas != 0)
      return refuse(std::string(name) + " " + std::to_string(batch) + " cannot be divided over " +
                    std::to_string(replicas) + " replicas");
  if (side != 32 && side != 128)
    return refuse("the network is of 32 or 128 pixels, but pictures have a side of " +
                  std::to_string(side));
  return check(options.schedule);
}

}  // namespace troupe::learners
