#!/bin/bash
# GPUs with NVLink on a bare machine with the CUDA toolkit, Python 3.12 and no network: sets of up to four flows, and
# NCCL's collectives of two and of all GPUs, with peer access and through shared memory (NCCL_P2P_DISABLE=1).
#
#     GPUS=4 OUT=results bash benchmarks/h200/four_gpus.sh
#
# What is predicted of it is committed before (benchmarks/runs/2026-11-28-four-gpus, -two-gpus). WHEELS as in run.sh.
set -u
out=$(realpath -m "${OUT:-out/four-gpus}") wheels=$(realpath -m "${WHEELS:-.wheels}") site=$(mktemp -d) gpus=${GPUS:-4}
mkdir -p "$out/runs"
begun=$(date +%s)
say() { echo "== $* after $(($(date +%s) - begun)) s"; }
python3 -m pip install -q --no-index --no-deps --no-compile --target "$site" "$wheels"/*.whl || exit 2
export PYTHONPATH=$site PYTHONUNBUFFERED=1
{ nvidia-smi; nvidia-smi topo -m; uname -srm; lscpu; } > "$out/machine.txt" 2>&1
head -n 14 "$out/machine.txt"
say installed
collectives() {  # collectives NAME FIRST..LAST: of those GPUs, what is measured with the environment of the call
    timeout 60 python3 -m lanewise.cli.main measure collectives --devices "gpu[0-$2]" --sizes 1MiB:1GiB \
        --collective all_reduce,all_gather,reduce_scatter,broadcast,sendrecv -o "$out/runs/$1.run.json" > "$out/runs/$1.txt" 2>&1
    say "$1"
}
for last in 1 $((gpus - 1)); do
    [ -e "$out/runs/ranks-$((last + 1)).run.json" ] && continue
    collectives "ranks-$((last + 1))" "$last"
    NCCL_P2P_DISABLE=1 collectives "ranks-$((last + 1))-no-p2p" "$last"
done
timeout "${SECONDS_SETS:-400}" python3 benchmarks/h200/flow_sets.py measure --gpus "$gpus" -o "$out" | tail -n 5
say sets of flows
cat "$out"/runs/ranks-*.txt | grep -E ' (256 MiB|1 GiB|16 MiB) ' | head -n 60
tar -C "$out" -czf "$out/runs.tar.gz" runs && rm -r "$out/runs" "$site"
say done
