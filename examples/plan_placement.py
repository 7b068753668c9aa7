"""Four GPUs behind one long path serve too few pictures: ask which of them to give to the second server.

Expect: one GPU moves, the whole demand is served within its 15 ms, as a simulation confirms, and the limit of today's
placement is the path's read window.
"""

import lanewise

plan = lanewise.plan("composable-server-path4-two-hosts", services=["resnet50 170000 QPS"])

current, best = plan.current.score.lines[0], plan.best.score.lines[0]
print(f"as it stands   {current.rate:9,.0f} QPS   {current.limit}")
print(f"after moving   {best.rate:9,.0f} QPS   {best.limit}")
for move in plan.best.moves:
    print(move.show())
for tenant in plan.best.confirmed.tenants:
    print(f"{tenant.tenant}: {tenant.show()}")

assert [move.device for move in plan.best.moves] == ["gpu3"]
assert current.rate < 0.85 * 170_000
assert best.rate >= 0.98 * 170_000
assert plan.bounds_kept
