// Appends bytes. Out of line: inlined into callers, GCC 12 warns of overflows that cannot happen.
#include "replay/bytes.hpp"

namespace troupe::replay {

void ByteWriter::bytes(const void* data, std::size_t size) {
  const auto* first = static_cast<const std::uint8_t*>(data);
  out_.insert(out_.end(), first, first + size);
}

}  // namespace troupe::replay
