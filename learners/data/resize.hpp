// Resampling with the triangle filter whose support grows with the reduction, which is what Pillow
// and torchvision call antialiased bilinear. Written by hand: networks that were trained elsewhere
// must see the same pixels, and no packaged library gives Pillow's values for a part of a picture.
#pragma once

#include "envs/spec/result.hpp"
#include "learners/data/image.hpp"

namespace troupe::learners::data {

// `region` of `image` as a picture of width x height pixels: Pillow's Image.resize((width, height),
// BILINEAR, box), to the last bit where Pillow goes across before down, as it always did before it
// chose by cost, and within one level elsewhere. kInvalidArgument when the region is empty or not
// inside.
Result<Image> resize(const Image& image, const Region& region, int width, int height);

}  // namespace troupe::learners::data
