// How fast JPEGs become what a network sees: decoded, randomly cut to 224 x 224, mirrored,
// normalised; one thread.
//
//   troupe_decode_benchmark FOLDER      all JPEGs below it, read into memory first
//
// Prints "ready" after its warm-up; then each line "SECONDS" on its input is answered by one JSON
// line with the rate, pictures per second, measured over that time. It sleeps in between, so that
// it can be timed in turns with others.
#include <ATen/Parallel.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <stdexcept>

#include "envs/spec/files.hpp"
#include "learners/data/augment.hpp"
#include "learners/supervised/picture_input.hpp"
#include "models/kept_memory.hpp"
#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

struct Work {
  data::AugmentOptions augment;
  std::vector<std::vector<std::uint8_t>> files;
  std::vector<std::uint8_t> batch;
  PictureInput input;
  Random random{1};

  explicit Work(const std::filesystem::path& folder) : input(normalisation(), 3) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
      if (entry.path().extension() == ".jpg") files.push_back(read_file(entry.path()).value());
    if (files.empty()) throw std::runtime_error("no JPEG below " + folder.string());
    batch.resize(files.size() * picture_bytes());
  }

  static ClassifierOptions normalisation() {
    ClassifierOptions options;
    options.mean = {124, 116, 104};
    options.deviation = {58, 57, 57};
    return options;
  }
  std::size_t picture_bytes() const {
    return static_cast<std::size_t>(3 * augment.size * augment.size);
  }

  // All files once, as a batch.
  void step() {
    for (std::size_t i = 0; i < files.size(); ++i) {
      const auto picture = data::training_picture(files[i], "a file", 3, augment, random);
      if (!picture) throw std::runtime_error(picture.error().message);
      std::copy(picture->pixels.begin(), picture->pixels.end(),
                batch.begin() + static_cast<std::ptrdiff_t>(i * picture_bytes()));
    }
    (void)input(batch.data(), static_cast<std::int64_t>(files.size()), augment.size);
  }
};

double rate(Work& work, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  std::size_t pictures = 0;
  std::chrono::duration<double> passed{};
  for (; passed.count() < seconds; passed = Clock::now() - start) {
    work.step();
    pictures += work.files.size();
  }
  return static_cast<double>(pictures) / passed.count();
}

}  // namespace
}  // namespace troupe::learners

int main(int count, char** arguments) try {
  if (count != 2) throw std::runtime_error("usage: troupe_decode_benchmark FOLDER");
  at::set_num_threads(1);
  troupe::models::keep_tensor_memory();
  troupe::learners::data::keep_pixel_memory();
  troupe::learners::Work work(arguments[1]);
  work.step();
  std::cout << "ready" << std::endl;
  for (double seconds = 0; std::cin >> seconds;)
    std::cout << "{\"rate\": " << rate(work, seconds) << "}" << std::endl;
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "troupe_decode_benchmark: %s\n", error.what());
  return 1;
}
