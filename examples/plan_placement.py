"""Four GPUs behind one long path serve too few pictures: ask which of them to give to the second server.

Expect: one GPU moves, the whole demand is served, and the limit of today's placement is the path's read window.
"""

import lanewise

# What one L40S answers is fitted to published scores (lanewise calibrate composable-server); here it is stated.
plan = lanewise.plan("composable-server-path4-two-hosts", services=["resnet50 170000 QPS each 43367 QPS"])

today, best = plan.today.score.lines[0], plan.best.score.lines[0]
print(f"as it stands   {today.rate:9,.0f} QPS   {today.limit}")
print(f"after moving   {best.rate:9,.0f} QPS   {best.limit}")
for move in plan.best.moves:
    print(move.show())

assert [move.device for move in plan.best.moves] == ["gpu3"]
assert today.rate < 0.85 * 170_000
assert best.rate >= 0.98 * 170_000
