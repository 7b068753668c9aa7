#include "cuda/group_calls.hpp"

namespace lanewise::cuda {

GroupFailure GroupCalls::issue(int times) const {
  for (int turn = 0; turn < times; ++turn) {
    if (const int code = start_()) return {0, code};
    std::size_t at = 1;
    for (const auto& call : calls_) {
      if (const int code = call()) return {at, code};
      ++at;
    }
    if (const int code = end_()) return {at, code};
  }
  return {0, 0};
}

}  // namespace lanewise::cuda
