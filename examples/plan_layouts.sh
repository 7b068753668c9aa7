#!/bin/sh
# Which of four 8-GPU servers for which work, and which card for which GPU. Expect: the typical layout first for
# independent work, one root complex first for a ring over all eight, two cards first for traffic that leaves the box.
set -eu
layouts="cirrascale-typical cirrascale-2cpu-2ib cirrascale-1rc cirrascale-1cpu"
lanewise plan $layouts --pattern scatter --pattern ring --pattern ring-4 --pattern off-box
lanewise plan dgx-a100-network --pin nic
