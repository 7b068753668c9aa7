"""Four GPUs behind one cable: what can the service take, and does a checkpoint beside it break the bound?

Expect: on path 4 the shared read window limits the peak; at 90 % of that peak the service holds. Reading training data
at full speed over the same cable makes it INVALID, and the note says who takes what.
"""

import lanewise

system = lanewise.load_system("composable-server-gen4", {"path": 4, "gpus": 4})
peak = lanewise.peak(system, "resnet50")
print(f"peak {peak.qps:,.0f} QPS, p99 {peak.latency * 1e3:.1f} ms; limit: {peak.limit}")
for advice in peak.advice:
    print(f"  {advice.says}: x {advice.gain:.2f}")

rate = f"resnet50 {0.9 * peak.qps:.0f} QPS"
alone = lanewise.simulate(system, rate)[0]
beside = lanewise.simulate(system, rate, background="host0->gpu0, host0->gpu1, host0->gpu2, host0->gpu3")[0]
for name, found in (("alone", alone), ("beside training reads", beside)):
    verdict = "VALID" if found.valid else "INVALID"
    print(f"{rate} {name}: {verdict}, p99 {found.latency * 1e3:.1f} ms {found.note}")

assert alone.valid
assert not beside.valid
