#!/bin/bash
# Two GPUs with NVLink on a bare machine with the CUDA toolkit, Python 3.12 and no network: what a short collective of one
# process takes by how it is launched: on its stream, in a CUDA graph, and either without clusters of blocks.
#
#     OUT=results bash benchmarks/h200/launches.sh
#
# Predicted before: benchmarks/runs/2026-11-28-graph-launch. WHEELS as in run.sh; Python files of the tree replace theirs.
set -u
out=$(realpath -m "${OUT:-out/launches}") wheels=$(realpath -m "${WHEELS:-.wheels}") site=$(mktemp -d)
mkdir -p "$out"
python3 -m pip install -q --no-index --no-deps --no-compile --target "$site" "$wheels"/*.whl || exit 2
(cd src && find lanewise -name '*.py' -print0 -o -name '*.yaml' -print0 | tar --null -T - -cf -) | tar -C "$site" -xf -
export PYTHONPATH=$site PYTHONUNBUFFERED=1
{ nvidia-smi; nvidia-smi topo -m; uname -srm; lscpu; } > "$out/machine.txt" 2>&1
measured() {  # measured NAME OPTION...: with the environment of the call
    local name=$1
    shift
    timeout 90 python3 -m lanewise.cli.main measure collectives --devices "gpu[0-1]" --sizes 8B,1KiB,64KiB,256KiB,1MiB,2MiB,4MiB,8MiB,64MiB,1GiB \
        --collective all_reduce,all_gather,reduce_scatter,broadcast,sendrecv "$@" -o "$out/$name.run.json" > "$out/$name.txt" 2>&1
    echo "== $name: $?"
    grep -E 'error|hint|all_reduce|sendrecv' "$out/$name.txt" | head -n 24
}
measured stream
measured graph --launch graph
NCCL_CGA_CLUSTER_SIZE=0 measured stream-no-clusters
NCCL_CGA_CLUSTER_SIZE=0 measured graph-no-clusters --launch graph
tar -C "$out" -czf "$out/runs.tar.gz" stream.run.json graph.run.json stream-no-clusters.run.json graph-no-clusters.run.json
rm -r "$site"
