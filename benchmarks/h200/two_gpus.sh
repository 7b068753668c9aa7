#!/bin/bash
# Two GPUs with NVLink on a bare machine with the CUDA toolkit, Python 3.12 and no network, in about five minutes:
# every set of up to four flows, NCCL's collectives, blocks of a KV cache between the GPUs, and what check says.
#
#     SYSTEM=system.yaml OUT=results bash benchmarks/h200/two_gpus.sh
#
# With SYSTEM one set of three copies is measured first, and all sets are predicted again by it before they are measured.
# What is predicted of all of it is committed before (benchmarks/runs/2026-11-26-two-gpus). WHEELS as in run.sh.
set -u
out=$(realpath -m "${OUT:-out/two-gpus}") wheels=$(realpath -m "${WHEELS:-.wheels}") site=$(mktemp -d)
mkdir -p "$out/runs"
begun=$(date +%s)
say() { echo "== $* after $(($(date +%s) - begun)) s"; }
pip() { python3 -m pip install -q --no-index --no-deps --no-compile --target "$site" "$@"; }
pip "$wheels"/*.whl && LANEWISE_LOADGEN=OFF pip --no-build-isolation . > "$out/build.log" 2>&1 || { tail -n 30 "$out/build.log"; exit 2; }
export PYTHONPATH=$site PYTHONUNBUFFERED=1
lanewise() { timeout "${SECONDS_EACH:-120}" python3 -m lanewise.cli.main "$@"; }
{ nvidia-smi; nvidia-smi topo -m; nvidia-smi -q -d CLOCK,PERFORMANCE; uname -srm; lscpu; } > "$out/machine.txt" 2>&1
lanewise discover -o "$out/runs/discovered.yaml" > /dev/null
say built
lanewise measure gpu --cases default -o "$out/runs/gpu.run.json" > "$out/runs/gpu.txt" 2>&1
say measured the default cases
if [ -n "${SYSTEM:-}" ]; then
    lanewise measure gpu --flows 'host0->gpu0, gpu0->host0, host0->gpu1' -o "$out/one-set.run.json" > "$out/one-set.txt" 2>&1
    python3 benchmarks/h200/flow_sets.py predict "$SYSTEM" --measured "$out/one-set.run.json" -o "$out/after-one-set"
    say measured one set and predicted the others by it
fi
timeout 200 python3 benchmarks/h200/flow_sets.py measure --gpus 2 -o "$out" | tail -n 20
say measured flow sets
lanewise measure collectives --collective all_reduce,all_gather,reduce_scatter,broadcast,sendrecv --sizes 8B:1GiB \
    -o "$out/runs/collectives.run.json" > "$out/runs/collectives.txt" 2>&1
tail -n 20 "$out/runs/collectives.txt"
say measured collectives
for blocks in '65536 x 16 KiB' '16384 x 64 KiB' '8192 x 128 KiB' '1024 x 1024 KiB'; do
    name=${blocks#* x } && name=${name/ /}
    lanewise measure kv --to gpu1 --blocks "$blocks" --runs 5 -o "$out/runs/kv-$name.run.json" > "$out/runs/kv-$name.txt" 2>&1
    tail -n 12 "$out/runs/kv-$name.txt"
done
say measured blocks
for run in gpu collectives; do
    lanewise check --from "$out/runs/$run.run.json" > "$out/runs/check-$run.txt" 2>&1
    echo "check of $run: exit code $?"
    tail -n 8 "$out/runs/check-$run.txt"
done
if [ -n "${SYSTEM:-}" ]; then
    cp "$out/measured.json" "$out/after-one-set/" && python3 benchmarks/h200/flow_sets.py compare "$out/after-one-set" | sed -n 3,7p
    rm "$out/after-one-set/measured.json"
fi
tar -C "$out" -czf "$out/runs.tar.gz" runs && rm -r "$out/runs" "$site"
say done
