"""The start of a study: a small system and a study of it, commented, that run as they are."""

from __future__ import annotations

import re

from lanewise.errors import InputError

_SYSTEM = """\
# A system: devices and what joins them. Parts come from the catalogue (lanewise parts list).
# Look at it:  lanewise system show {name}-system.yaml    lanewise route {name}-system.yaml
lanewise: 1
system: {name}-system
title: Four GPUs behind one switch
source: made up by lanewise study new; describe your own machine here
parameters:
  gpus: {{default: 4, min: 2, max: 8, help: GPUs below the switch}}
devices:
  cpu0: {{cpu: xeon-gold-6454s}}
  sw0: {{switch: pex88096}}
  "gpu[0-{{gpus-1}}]": {{gpu: a100-pcie-40gb}}     # ranges and parameters make many devices at once
links:
  - {{from: cpu0, to: sw0, pcie: gen4 x16}}        # `from` is the upstream end, nearer to the CPU
  - {{from: sw0, to: "gpu[0-{{gpus-1}}]", pcie: gen4 x16}}
assumptions:
  - everything; write here what you had to guess; every report lists it
"""

_STUDY = """\
# A study: questions about systems, compared with published or measured numbers.
# Run it:      lanewise study run {name}.yaml -o report.html
# Measure it:  lanewise measure gpu -o measured.json; then: lanewise study run {name}.yaml --measured measured.json
# The format:  docs/reference/study-format.md
lanewise: 1
study: {name}
title: Does one switch feed all GPUs?
source: where the published numbers are from
finding: "One uplink is shared by all GPUs: {{rows}} rows."   # {{rms}} and {{worst}} give the residuals in %
systems:
  mine: {name}-system.yaml                      # a file in the same folder, or a built-in system
tables:
  - name: copies
    title: Copies from the host
    system: mine
    metric: goodput                             # all flows together; flow_goodput is the first one alone
    unit: GB/s
    rows:
      # Replace null by a published figure to see the residual of the prediction; what you measured
      # on this machine comes by --measured instead: every row finds the value of the same flows.
      - {{label: one GPU, scenario: {{flows: "host0->gpu0"}}, published: null}}
      - {{label: two GPUs, scenario: {{flows: "host0->gpu0, host0->gpu1"}}, published: null}}
  - name: peers
    title: Copies between GPUs
    system: mine
    metric: goodput
    unit: GB/s
    rows:
      - {{label: peer to peer, scenario: {{flows: "gpu0->gpu1"}}, published: null}}
      - {{label: through the host, scenario: {{flows: "gpu0->gpu1", p2p: false}}, published: null}}
conclusions:
  - says: Two GPUs together get hardly more from the host than one
    test: v('copies', 'two GPUs') < 1.3 * v('copies', 'one GPU')
    shows: "[v('copies', 'one GPU'), v('copies', 'two GPUs')]"
charts:
  - {{title: Copies from the host, kind: bar, table: copies, x: label}}
drawings:
  - {{title: Two GPUs fed at once, system: mine, scenario: {{flows: "host0->gpu0, host0->gpu1"}}}}
"""


def starter(name: str) -> tuple[str, str]:
    """The texts of a study and of its system NAME-system.yaml; InputError for a name that cannot be one."""
    if not re.fullmatch(r"[A-Za-z][\w-]*", name):
        raise InputError(f"'{name}' cannot name a study", hint="use letters, digits, '-' and '_', a letter first")
    return _STUDY.format(name=name), _SYSTEM.format(name=name)
