// Implements the agreement of ranks that see only bytes of each other.
#include "learners/collectives/exchanged.hpp"

#include <c10/core/GradMode.h>

#include <array>
#include <cstring>
#include <mutex>

#include "envs/spec/fnv.hpp"
#include "learners/collectives/call.hpp"
#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

// What each rank says before a call.
struct Intent {
  std::uint64_t digest = 0;
  std::uint64_t number = 0;  // calls before this one
  std::uint64_t faulty = 0;  // 1: this rank cannot make its call
  std::uint64_t bytes = 0;   // of all tensors
};

// How much of a signature or fault ranks show each other when they differ.
constexpr std::size_t kShown = 16384;
// Tensors up to this size travel together.
constexpr std::size_t kSmall = 64 << 10;

std::uint64_t digest_of(const Call& call) {
  Fnv1a digest;
  const auto number = [&](std::int64_t value) { digest.add(static_cast<std::uint64_t>(value)); };
  number(static_cast<std::int64_t>(call.kind));
  number(call.parameter);
  digest.add(call.name);
  for (const at::Tensor& tensor : call.tensors) {
    number(static_cast<std::int64_t>(tensor.scalar_type()));
    number(tensor.dim());
    for (const std::int64_t extent : tensor.sizes()) number(extent);
  }
  return digest.value();
}

class Exchanged final : public Collective {
 public:
  Exchanged(std::unique_ptr<Exchange> exchange, std::string member)
      : exchange_(std::move(exchange)), member_(std::move(member)) {}

  int rank() const override { return exchange_->rank(); }
  int size() const override { return exchange_->size(); }
  // Also while another thread of this rank is in a call, which then says it at its end.
  void leave(std::string_view reason) override {
    const std::lock_guard lock(mutex_);
    if (busy_)
      leaving_ = reason.empty() ? "it was told to" : std::string(reason);
    else
      exchange_->leave(reason);
  }

  Result<void> all_reduce(std::span<const at::Tensor> tensors, ReduceOp op,
                          std::string_view name) override {
    const Busy busy(*this);
    const Call call{CallKind::kAllReduce, static_cast<int>(op), tensors, name};
    return begin(call).and_then([&] {
      const c10::NoGradGuard no_grad;
      return named(call, reduce_all(tensors, op));
    });
  }

  Result<std::vector<at::Tensor>> all_gather(std::span<const at::Tensor> tensors,
                                             std::string_view name) override {
    const Busy busy(*this);
    const Call call{CallKind::kAllGather, 0, tensors, name};
    if (Result<void> begun = begin(call); !begun) return tl::unexpected(begun.error());
    const c10::NoGradGuard no_grad;
    std::vector<at::Tensor> gathered;
    for (const at::Tensor& tensor : tensors) {
      std::vector<std::int64_t> shape = tensor.sizes().vec();
      shape.insert(shape.begin(), size());
      gathered.push_back(at::empty(shape, tensor.options()));
      const Result<void> done =
          named(call, exchange_->gather(bytes_of(tensor), bytes_of(gathered.back())));
      if (!done) return tl::unexpected(done.error());
    }
    return gathered;
  }

  Result<void> broadcast(std::span<const at::Tensor> tensors, int from,
                         std::string_view name) override {
    const Busy busy(*this);
    const Call call{CallKind::kBroadcast, from, tensors, name};
    if (Result<void> begun = begin(call); !begun) return begun;
    for (const at::Tensor& tensor : tensors)
      if (Result<void> done = named(call, exchange_->broadcast(bytes_of(tensor), from)); !done)
        return done;
    return {};
  }

 private:
  // Marks that a call is under way.
  class Busy {
   public:
    explicit Busy(Exchanged& owner) : owner_(owner) {
      const std::lock_guard lock(owner_.mutex_);
      owner_.busy_ = true;
    }
    ~Busy() {
      const std::lock_guard lock(owner_.mutex_);
      owner_.busy_ = false;
      if (!owner_.leaving_.empty()) owner_.exchange_->leave(owner_.leaving_);
    }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;

   private:
    Exchanged& owner_;
  };

  // Returns when every rank is known to make the same call.
  Result<void> begin(const Call& call) {
    const std::string fault = fault_of(call, size());
    Intent mine{.digest = 0, .number = calls_++, .faulty = fault.empty() ? 0U : 1U, .bytes = 0};
    if (fault.empty()) {
      mine.digest = digest_of(call);
      for (const at::Tensor& tensor : call.tensors) mine.bytes += tensor.nbytes();
    }
    std::vector<Intent> all(static_cast<std::size_t>(size()));
    const auto view = [](auto* values, std::size_t bytes) {
      return std::span(reinterpret_cast<std::uint8_t*>(values), bytes);
    };
    if (Result<void> done =
            named(call, exchange_->gather(view(&mine, sizeof(mine)),
                                          view(all.data(), all.size() * sizeof(mine))));
        !done)
      return done;
    bool same = true;
    for (const Intent& other : all)
      same = same && other.faulty == 0 && std::memcmp(&other, &all[0], sizeof(other)) == 0;
    return same ? Result<void>{} : explain(call, fault, all);
  }

  // All ranks come here together, as all saw the same intents, and leave with the same sentence.
  Result<void> explain(const Call& call, const std::string& fault, const std::vector<Intent>& all) {
    const std::string text = fault.empty()
                                 ? signature_of(call)
                                 : call.text() + " of " + member_ + " " + std::to_string(rank()) +
                                       " cannot be made: " + fault + ".";
    std::vector<std::uint8_t> mine(kShown), shown(kShown * all.size());
    std::memcpy(mine.data(), text.data(), std::min(text.size(), kShown - 1));
    if (Result<void> done = named(call, exchange_->gather(mine, shown)); !done) return done;
    const auto text_of = [&](std::size_t i) {
      return std::string(reinterpret_cast<const char*>(shown.data() + i * kShown));
    };
    std::string error;
    for (std::size_t i = 0; i < all.size() && error.empty(); ++i)
      if (all[i].faulty != 0) error = text_of(i);
    for (std::size_t i = 1; i < all.size() && error.empty(); ++i)
      if (std::memcmp(&all[i], &all[0], sizeof(Intent)) != 0)
        error = difference_of(text_of(0), text_of(i), member_ + " 0",
                              member_ + " " + std::to_string(i));
    exchange_->leave(error);
    return fail(ErrorCode::kUnavailable, error);
  }

  // The transport's errors do not know the call.
  Result<void> named(const Call& call, Result<void> result) {
    if (result) return result;
    const std::string text = call.text() + " of " + member_ + " " + std::to_string(rank()) +
                             " failed: " + result.error().message;
    exchange_->leave(text);
    return fail(ErrorCode::kUnavailable, text);
  }

  Result<void> reduce_all(std::span<const at::Tensor> tensors, ReduceOp op) {
    for (std::size_t first = 0; first < tensors.size();) {
      std::size_t last = first + 1;
      const auto joins = [&](const at::Tensor& tensor) {
        return tensor.nbytes() <= kSmall && tensor.scalar_type() == tensors[first].scalar_type();
      };
      if (joins(tensors[first]))
        while (last < tensors.size() && joins(tensors[last])) ++last;
      const auto run = tensors.subspan(first, last - first);
      if (Result<void> done =
              run.size() == 1 ? reduce_one(elements_of(run[0]), op) : reduce_packed(run, op);
          !done)
        return done;
      first = last;
    }
    return {};
  }

  Result<void> reduce_packed(std::span<const at::Tensor> tensors, ReduceOp op) {
    std::size_t bytes = 0;
    for (const at::Tensor& tensor : tensors) bytes += tensor.nbytes();
    packed_.resize(bytes);
    const Elements whole{packed_.data(),
                         static_cast<std::int64_t>(bytes / tensors[0].element_size()),
                         *element_type(tensors[0].scalar_type())};
    const auto copy = [&](auto direction) {
      std::uint8_t* at = packed_.data();
      for (const at::Tensor& tensor : tensors) {
        direction(at, bytes_of(tensor));
        at += tensor.nbytes();
      }
    };
    copy([](std::uint8_t* at, auto data) { std::copy(data.begin(), data.end(), at); });
    Result<void> done = reduce_one(whole, op);
    copy([](std::uint8_t* at, auto data) { std::copy_n(at, data.size(), data.begin()); });
    return done;
  }

  Result<void> reduce_one(Elements values, ReduceOp op) {
    if (values.count == 0) return {};
    Result<void> done = exchange_->reduce(values, op == ReduceOp::kMean ? ReduceOp::kSum : op);
    if (done && op == ReduceOp::kMean) divide(values, size());
    return done;
  }

  std::unique_ptr<Exchange> exchange_;
  std::string member_;
  std::uint64_t calls_ = 0;
  std::vector<std::uint8_t> packed_;
  std::mutex mutex_;
  bool busy_ = false;
  std::string leaving_;  // why, if someone else said so during a call
};

}  // namespace

std::unique_ptr<Collective> make_exchanged_collective(std::unique_ptr<Exchange> exchange,
                                                      std::string member) {
  return std::make_unique<Exchanged>(std::move(exchange), std::move(member));
}

}  // namespace troupe::learners
