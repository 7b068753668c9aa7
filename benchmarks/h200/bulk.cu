// Copies pieces as lanewise_copy_pieces does, by Hopper's bulk copies: one thread of a block brings 16 KiB into shared
// memory and sends them on, so that the writes to the host are not those of a warp.
extern "C" __global__ void bulk_pieces(char* to, const char* from, const unsigned* to_places,
                                       const unsigned* from_places, unsigned long long count,
                                       unsigned long long bytes) {
  constexpr unsigned kPart = 16384, kStages = 2;
  __shared__ alignas(128) char stages[kStages][kPart];
  __shared__ alignas(8) unsigned long long arrivals[kStages];
  if (threadIdx.x != 0) return;
  const auto shared = [](const void* at) { return static_cast<unsigned>(__cvta_generic_to_shared(at)); };
  for (unsigned long long& arrival : arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared(&arrival)) : "memory");
  }
  asm volatile("fence.proxy.async;" ::: "memory");
  const unsigned long long parts = bytes / kPart;
  unsigned turn = 0;
  for (unsigned long long k = blockIdx.x; k < parts * count; k += gridDim.x, ++turn) {
    const unsigned stage = turn % kStages, phase = turn / kStages % 2;
    const unsigned at = shared(stages[stage]), arrival = shared(&arrivals[stage]);
    const char* source = from + from_places[k / parts] * bytes + k % parts * kPart;
    char* target = to + to_places[k / parts] * bytes + k % parts * kPart;
    asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");  // what left this stage before
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(arrival), "r"(kPart) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(at),
                 "l"(source), "r"(kPart), "r"(arrival)
                 : "memory");
    asm volatile(
        "{\n.reg .pred done;\nwait:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra wait;\n}\n" ::"r"(
            arrival),
        "r"(phase)
        : "memory");
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(target), "r"(at), "r"(kPart)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  }
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
