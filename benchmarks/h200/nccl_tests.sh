#!/bin/bash
# lanewise measure collectives beside nccl-tests -g on the GPUs of a bare machine, in turns, in about three minutes.
#
#     OUT=results bash benchmarks/h200/nccl_tests.sh
#
# PEERS   sources to build here (default .peers): nccl-tests/ of github.com/NVIDIA/nccl-tests. WHEELS as in run.sh.
set -u
out=$(realpath -m "${OUT:-out/nccl-tests}") wheels=$(realpath -m "${WHEELS:-.wheels}") site=$(mktemp -d) work=$(mktemp -d)
peers=$(realpath -m "${PEERS:-.peers}")
mkdir -p "$out/runs"
pip() { python3 -m pip install -q --no-index --no-deps --no-compile --target "$site" "$@"; }
pip "$wheels"/*.whl && LANEWISE_LOADGEN=OFF pip --no-build-isolation . > "$out/build.log" 2>&1 || { tail -n 30 "$out/build.log"; exit 2; }
export PYTHONPATH=$site PYTHONUNBUFFERED=1
{ nvidia-smi; nvidia-smi topo -m; uname -srm; lscpu; } > "$out/machine.txt" 2>&1
nccl=$(python3 -c 'from lanewise.installed import nccl; print(nccl())')
mkdir -p "$work/nccl/lib" && ln -s "$nccl" "$work/nccl/lib/libnccl.so" && ln -s "$nccl" "$work/nccl/lib/libnccl.so.2"
header=$(find "$(dirname "$nccl")/.." /usr/include /usr/local -name nccl.h 2> /dev/null | head -n 1)
mkdir "$work/nccl/include" && cp -r "$(dirname "$header")"/nccl* "$work/nccl/include/"
cuda=${CUDA_HOME:-/usr/local/cuda} gpus=$(nvidia-smi -L | grep -c ^GPU)
arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
cp -r "$peers/nccl-tests" "$work/tests"
make -C "$work/tests" -j "$(nproc)" NCCL_HOME="$work/nccl" CUDA_HOME="$cuda" NVCC_GENCODE="-gencode=arch=compute_$arch,code=sm_$arch" \
    > "$out/nccl-tests.log" 2>&1 || { tail -n 20 "$out/nccl-tests.log"; exit 2; }
export LD_LIBRARY_PATH="$work/nccl/lib:${LD_LIBRARY_PATH:-}"
for turn in 1 2; do
    for name in all_reduce all_gather reduce_scatter broadcast sendrecv; do
        timeout 60 "$work/tests/build/${name}_perf" -b 8 -e 1G -f 2 -g "$gpus" > "$out/runs/nccl-tests-$name-$turn.txt" 2>&1
    done
    timeout 150 python3 -m lanewise.cli.main measure collectives --sizes 8B:1GiB \
        --collective all_reduce,all_gather,reduce_scatter,broadcast,sendrecv -o "$out/runs/lanewise-$turn.run.json" > "$out/runs/lanewise-$turn.txt" 2>&1
    tail -n 3 "$out/runs/lanewise-$turn.txt"
done
head -n 40 "$out/runs/nccl-tests-all_reduce-1.txt"
tar -C "$out" -czf "$out/runs.tar.gz" runs && rm -r "$out/runs" "$site" "$work"
