"""Two servers share one box of GPUs: move two GPUs to the other server and see what the shared cable gains.

Expect: the slowest of four GPUs fed at once gains by the move if its server's own cable was the limit, and
nothing if it was something that both servers share. The limits say which.
"""

import lanewise

before = lanewise.load_system("composable-server-two-hosts")
after = before
for gpu in ("gpu2", "gpu3"):
    after = lanewise.attach(lanewise.detach(after, gpu), gpu, "host1")


def feed(system: object, owner: dict[str, str]) -> float:
    """The slowest GPU's rate when every GPU is fed by its own host."""
    found = lanewise.predict(system, ", ".join(f"{host}->{gpu}" for gpu, host in owner.items()))
    for flow in found.rates:
        print(f"  {flow.flow.name:12} {flow.rate / 1e9:6.2f} GB/s   {flow.limit}")
    return min(flow.rate for flow in found.rates)


print("four GPUs at host0")
one = feed(before, {f"gpu{i}": "host0" for i in range(4)})
print("two GPUs at each host")
two = feed(after, {"gpu0": "host0", "gpu1": "host0", "gpu2": "host1", "gpu3": "host1"})
print(f"the slowest GPU gets {two / one:.2f} times as much")

assert after.device("gpu3").host == "host1"
assert two >= one
