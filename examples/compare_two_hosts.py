"""The same GPU chassis on a Gen3 and on a Gen4 host: what differs, and why?

Expect: copies from and to the host follow the host's PCIe generation, copies between GPUs do not.
"""

import lanewise

hosts = {name: lanewise.load_system(name) for name in ("falcon-4010-xeon", "falcon-4010-epyc")}
asked = {
    "host to device": "host0->gpu0",
    "device to host": "gpu0->host0",
    "GPU to GPU, both ways": "gpu0<->gpu1",
}

print(f"{'GB/s':24}" + "".join(f"{name:>20}" for name in hosts))
ratios = {}
for title, flows in asked.items():
    found = [lanewise.predict(system, flows) for system in hosts.values()]
    ratios[title] = found[1].total / found[0].total
    print(f"{title:24}" + "".join(f"{one.total / 1e9:20.2f}" for one in found) + f"   x{ratios[title]:.2f}")
    for name, one in zip(hosts, found, strict=True):
        print(f"    {name}: {one.rates[0].limit}")

assert ratios["host to device"] > 1.5
assert 0.95 < ratios["GPU to GPU, both ways"] < 1.05
