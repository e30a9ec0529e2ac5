// Tensors and the messages of parameter servers as bytes. Readers check lengths before they
// allocate.
#pragma once

#include <memory>
#include <optional>

#include "learners/collectives/request_link.hpp"
#include "learners/parameter_servers/service.hpp"
#include "models/inference/bytes.hpp"

namespace troupe::learners {

void put_tensors(models::ByteWriter& writer, const std::vector<at::Tensor>& tensors);
// Nothing: the bytes are no tensors.
std::optional<std::vector<at::Tensor>> take_tensors(models::ByteReader& reader);

// Answers a request of a remote service's; bytes that are none get an error as the answer.
std::vector<std::uint8_t> answer(ParameterService& service, std::span<const std::uint8_t> request);

// A server at the other end of a link. Calls take turns.
std::unique_ptr<ParameterService> make_remote_service(std::shared_ptr<RequestLink> link,
                                                      std::chrono::milliseconds timeout);

}  // namespace troupe::learners
