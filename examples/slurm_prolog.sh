#!/bin/sh
# Slurm prolog (Prolog=/etc/slurm/prolog.d/lanewise.sh): a node that is not well gets no job.
# A prolog that fails drains its node, and the job is queued again. It runs on each node by itself, so the node is compared
# with the model and, from the fourth time on, with its own past; keep PrologFlags=Alloc, and raise PrologEpilogTimeout above the bound of --plan.
HISTORY=${LANEWISE_HISTORY:-/var/lib/lanewise/history}
lanewise -q fleet check --on local:1 --no-network \
    --history "$HISTORY" --prometheus /var/lib/node_exporter/lanewise_fleet.prom --junit /var/tmp/lanewise_fleet.xml
case $? in
    0) exit 0 ;;
    1) logger -t lanewise "a path of $(hostname -s) is slow or at fault: /var/tmp/lanewise_fleet.xml"; exit 1 ;;
    *) exit 0 ;; # busy, nothing to compare with yet, or a mistake in this file: no reason to drain a node
esac
