#include "cuda/pool.hpp"

#include <utility>

#include "host/failure.hpp"

namespace lanewise::cuda {

template <class Buffer>
std::shared_ptr<Buffer> Shelf<Buffer>::take(int where, std::size_t bytes,
                                            const std::function<std::shared_ptr<Buffer>()>& make) {
  auto fitting = buffers_.end();
  auto too_small = buffers_.end();
  const auto [first, last] = buffers_.equal_range(where);
  for (auto at = first; at != last; ++at) {
    const PooledBuffer& buffer = at->second;
    if (!buffer.is_free()) continue;
    if (buffer.bytes < bytes) {
      too_small = at;
    } else if (fitting == buffers_.end() || buffer.bytes < fitting->second.bytes) {
      fitting = at;
    }
  }
  if (fitting != buffers_.end()) return fitting->second.buffer;
  if (too_small != buffers_.end()) buffers_.erase(too_small);
  return buffers_.emplace(where, PooledBuffer{bytes, make()})->second.buffer;
}

template <class Buffer>
bool Shelf<Buffer>::clear() {
  return std::erase_if(buffers_, [](const auto& place) { return place.second.is_free(); }) > 0;
}

template <class Buffer>
std::size_t Shelf<Buffer>::free_bytes(int where) const {
  std::size_t bytes = 0;
  const auto [first, last] = buffers_.equal_range(where);
  for (auto at = first; at != last; ++at) bytes += at->second.is_free() ? at->second.bytes : 0;
  return bytes;
}

template class Shelf<Pinned>;
template class Shelf<DeviceMemory>;

std::shared_ptr<Pinned> Pool::host(const std::shared_ptr<const Context>& registrar, std::size_t bytes, int node) {
  const auto take = [&] {
    return hosts_.take(node, bytes, [&] { return std::make_shared<Pinned>(registrar, bytes, node); });
  };
  try {
    return take();
  } catch (const host::Failure&) {
    if (!clear()) throw;
  }
  return take();
}

std::shared_ptr<DeviceMemory> Pool::device(const std::shared_ptr<const Context>& context, std::size_t bytes) {
  const auto take = [&] {
    return devices_.take(context->ordinal(), bytes,
                         [&] { return std::make_shared<DeviceMemory>(allocate(context, bytes)); });
  };
  try {
    return take();
  } catch (const host::Failure&) {
    if (!clear()) throw;
  }
  return take();
}

bool Pool::clear() {
  const bool hosts = hosts_.clear();
  return devices_.clear() || hosts;
}

}  // namespace lanewise::cuda
