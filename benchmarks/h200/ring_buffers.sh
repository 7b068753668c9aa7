#!/bin/bash
# GPUs with NVLink on a bare machine with the CUDA toolkit, Python 3.12 and no network: how rings depend on NCCL's
# buffers and channels, which the law of their last steps predicts (docs/decisions/0069), and what a call of one
# process takes by how it is launched.
#
#     GPUS=2 OUT=results bash benchmarks/h200/ring_buffers.sh
#
# Predicted before: benchmarks/runs/2026-11-28-ring-loops. With GPUS=4 also rings through shared memory whose buffers
# fit into what devices fill of the cache. WHEELS as in run.sh. About 150 s of two GPUs.
set -u
out=$(realpath -m "${OUT:-out/ring-buffers}") wheels=$(realpath -m "${WHEELS:-.wheels}") site=$(mktemp -d) gpus=${GPUS:-2}
mkdir -p "$out"
begun=$(date +%s)
python3 -m pip install -q --no-index --no-deps --no-compile --target "$site" "$wheels"/*.whl || exit 2
export PYTHONPATH=$site PYTHONUNBUFFERED=1
{ nvidia-smi; nvidia-smi topo -m; uname -srm; lscpu; lscpu -C; } > "$out/machine.txt" 2>&1
measured() {  # measured NAME SIZES OPERATIONS OPTION...: with the environment of the call
    local name=$1 sizes=$2 operations=$3
    shift 3
    timeout 60 python3 -m lanewise.cli.main measure collectives --devices "gpu[0-$((gpus - 1))]" --sizes "$sizes" \
        --collective "$operations" "$@" -o "$out/$name.run.json" > "$out/$name.txt" 2>&1
    echo "== $name after $(($(date +%s) - begun)) s"
    grep -E ' (64 MiB|256 MiB|1 GiB|8 B|64 KiB|1 MiB) ' "$out/$name.txt" | head -n 24
}
rings=all_reduce,all_gather,reduce_scatter
for mib in 1 4 16; do  # half of it is a chunk: the shorter, the less the last step of the first loops costs
    NCCL_BUFFSIZE=$((mib << 20)) measured "buffers-$mib" 8MiB:1GiB $rings
done
for channels in 12 32; do
    NCCL_MIN_NCHANNELS=$channels NCCL_MAX_NCHANNELS=$channels measured "channels-$channels" 8MiB:1GiB $rings
done
short=8B,64KiB,1MiB,2MiB,4MiB  # is it the cluster launch of Hopper that a call of one process waits for?
measured launch-stream $short $rings,broadcast,sendrecv
measured launch-graph $short $rings,broadcast,sendrecv --launch graph
NCCL_CGA_CLUSTER_SIZE=0 measured launch-no-clusters $short $rings,broadcast,sendrecv
export NCCL_P2P_DISABLE=1
measured memory-sends 64MiB:256MiB sendrecv
for mib in 1 2 4; do  # four ranks on four channels have 16 times as much: below 42 MiB nothing should be read from memory
    [ "$gpus" -ge 4 ] && NCCL_BUFFSIZE=$((mib << 20)) measured "memory-buffers-$mib" 8MiB:256MiB all_reduce
done
rm -r "$site"
