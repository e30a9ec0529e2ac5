#include "learners/gan/script_network.hpp"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>

#include <filesystem>
#include <system_error>

#include "models/kept_memory.hpp"
#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

std::string shape_text(const at::Tensor& tensor) {
  std::string text;
  for (const std::int64_t extent : tensor.sizes())
    text += (text.empty() ? "" : ", ") + std::to_string(extent);
  return "[" + text + "]";
}

// LibTorch's messages carry a trace of its own calls: the first line, or what the script said last.
std::string first_line(const std::exception& error) {
  const auto* own = dynamic_cast<const c10::Error*>(&error);
  const std::string text = own != nullptr ? own->what_without_backtrace() : error.what();
  return text.substr(0, text.find('\n'));
}

class ScriptNetwork final : public PictureNetwork {
 public:
  ScriptNetwork(torch::jit::Module module, const PictureSpec& pictures, int threads)
      : module_(std::move(module)), pictures_(pictures), threads_(threads) {}

  Result<Outputs> outputs(std::span<const std::uint8_t> pixels) override try {
    const auto picture =
        static_cast<std::size_t>(pictures_.side * pictures_.side * pictures_.channels);
    if (pixels.empty() || pixels.size() % picture != 0)
      return refuse(std::to_string(pixels.size()) + " bytes are no pictures of " +
                    std::to_string(picture) + " bytes each");
    at::set_num_threads(threads_);  // of the calling thread
    const at::NoGradGuard without_gradient;
    const auto count = static_cast<std::int64_t>(pixels.size() / picture);
    const at::Tensor input =
        at::from_blob(const_cast<std::uint8_t*>(pixels.data()),
                      {count, pictures_.side, pictures_.side, pictures_.channels}, at::kByte)
            .permute({0, 3, 1, 2})
            .to(at::kFloat)
            .contiguous();
    return taken(module_.forward({input}), count);
  } catch (const std::exception& error) {
    return refuse("it fails on pictures [B, " + std::to_string(pictures_.channels) + ", " +
                  std::to_string(pictures_.side) + ", " + std::to_string(pictures_.side) +
                  "]: " + first_line(error));
  }

 private:
  static tl::unexpected<Error> refuse(const std::string& what) {
    return fail(ErrorCode::kInvalidArgument, what);
  }

  static Result<Outputs> taken(const c10::IValue& value, std::int64_t count) {
    Outputs out;
    out.count = count;
    std::vector<c10::IValue> parts{value};
    if (value.isTuple()) parts = value.toTupleRef().elements().vec();
    if (parts.empty() || parts.size() > 2)
      return refuse("it gives " + std::to_string(parts.size()) +
                    " values, not features or (features, logits)");
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const char* name = i == 0 ? "features" : "logits";
      if (!parts[i].isTensor())
        return refuse(std::string("its ") + name + " are no tensor but " + parts[i].tagKind());
      const at::Tensor tensor = parts[i].toTensor();
      if (tensor.dim() != 2 || tensor.size(0) != count || tensor.size(1) < 1)
        return refuse(std::string("its ") + name + " of " + std::to_string(count) +
                      " pictures are " + shape_text(tensor) + ", not [" + std::to_string(count) +
                      ", any]");
      if (!at::isFloatingType(tensor.scalar_type()))
        return refuse(std::string("its ") + name + " are " + c10::toString(tensor.scalar_type()) +
                      ", no floats");
      const at::Tensor values = tensor.to(at::kFloat).contiguous();
      const float* from = values.const_data_ptr<float>();
      (i == 0 ? out.features : out.logits).assign(from, from + values.numel());
    }
    return out;
  }

  torch::jit::Module module_;
  const PictureSpec pictures_;
  const int threads_;
};

}  // namespace

Result<std::unique_ptr<PictureNetwork>> load_script_network(const std::string& file,
                                                            const PictureSpec& pictures,
                                                            int threads) {
  models::keep_tensor_memory();
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error))
    return fail(ErrorCode::kNotFound, "there is no file " + file);
  std::unique_ptr<ScriptNetwork> network;
  try {
    torch::jit::Module module = torch::jit::load(file, at::kCPU);
    module.eval();
    network = std::make_unique<ScriptNetwork>(std::move(module), pictures, threads);
  } catch (const std::exception& failed) {
    return fail(ErrorCode::kCorrupt, file + " is no TorchScript: " + first_line(failed));
  }
  const std::vector<std::uint8_t> grey(
      static_cast<std::size_t>(2 * pictures.side * pictures.side * pictures.channels), 128);
  if (const auto tried = network->outputs(grey); !tried)
    return fail(tried.error().code, file + ": " + tried.error().message);
  return network;
}

}  // namespace troupe::learners

extern "C" __attribute__((visibility("default")))
troupe::Result<std::unique_ptr<troupe::learners::PictureNetwork>>
troupe_load_script_network(const std::string& file, const troupe::learners::PictureSpec& pictures,
                           int threads) {
  return troupe::learners::load_script_network(file, pictures, threads);
}
