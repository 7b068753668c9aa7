"""Nobody has published how fast an L40S serves ResNet50 alone: fit that figure to a published table.

Expect: the fitted queries per second, the residual of the rows used, and that of each path when the fit did
not see it: a few percent. The calibrated part then predicts something else.
"""

import lanewise

unknown = "l40s service.resnet50.server 10000..100000 QPS"
fit, left_out = lanewise.calibrate(["composable-server"], [unknown], ["gen4"])

value = fit.values[0]
print(f"{value.key} = {value.value:,.0f} QPS, fitted to {value.used} rows, rms residual {fit.rms_pct:.1f} %")
for group in left_out:
    print(f"  left out {group.group:11} {group.rows:2d} rows, rms {group.rms_pct:5.1f} %")

box = lanewise.load_system("tx2550-m7-l40s", {"gpus": 2}, fit.catalog)
print(f"two L40S without a switch: {lanewise.serve(box, 'resnet50').qps:,.0f} QPS (fitted)")

assert 30_000 < value.value < 60_000
