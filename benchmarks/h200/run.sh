#!/bin/bash
# Lanewise beside nvbandwidth and p2pBandwidthLatencyTest on a bare machine with 1 to 8 GPUs and the CUDA toolkit,
# Python 3.12 and no network, in one go of at most ten minutes:
#
#     OUT=results bash benchmarks/h200/run.sh
#
# PEERS   sources to build here (default .peers): nvbandwidth/ and p2p/ (the CUDA sample's .cu with Common/), and shim/,
#         a header in place of Boost's program_options where its library is missing.
# WHEELS  Python packages that the machine lacks, and a wheel of lanewise itself (default .wheels); without the latter
#         it is built here. Made beforehand, with the network:
#           python3.12 -m pip wheel --no-deps -w .wheels .
#           python3.12 -m pip download --no-deps --only-binary=:all: --python-version 3.12 -d .wheels \
#             --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 --platform manylinux_2_28_x86_64 \
#             typer annotated-doc typing-extensions pydantic pydantic-core annotated-types typing-inspection
# SECONDS_ALL  for everything (default 570).
# Into OUT: first.txt, versus.md, versus.json, raw.tar.gz (all that was printed and every run file), build.log, machine.txt.
set -u
begun=$(date +%s)
peers=$(realpath -m "${PEERS:-.peers}") wheels=$(realpath -m "${WHEELS:-.wheels}") out=$(realpath -m "${OUT:-out/h200}")
total=${SECONDS_ALL:-570}
work=$(mktemp -d) && mkdir -p "$out" || exit 2
trap 'rm -rf "$work"' EXIT
export PATH="${CUDA_HOME:-/usr/local/cuda}/bin:$PATH" PYTHONUNBUFFERED=1
driver=/usr/lib/x86_64-linux-gnu  # where libcuda.so.1 and libnvidia-ml.so.1 lie: programs are linked to these two
for folder in /usr/local/nvidia/lib64 /usr/local/nvidia/lib $(ldconfig -p | sed -n 's|.*=> \(.*\)/libcuda.so.1$|\1|p'); do
    [ -e "$folder/libcuda.so.1" ] && driver=$folder && break
done
export LD_LIBRARY_PATH="$driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"

build_nvbandwidth() {
    local options=(-O3 -std=c++17 -arch=native -I. '-DGIT_VERSION="v0.8"') boost=(-lboost_program_options)
    echo 'int main() {}' | g++ -x c++ - "${boost[@]}" -o /dev/null 2> /dev/null || { options+=("-I$peers/shim") && boost=(); }
    cd "$peers/nvbandwidth" && mkdir -p "$work/objects" || return
    for file in *.cpp kernels.cu json/jsoncpp.cpp; do
        nvcc "${options[@]}" -c "$file" -o "$work/objects/$(basename "$file").o" &
    done
    wait
    nvcc -arch=native "$work"/objects/*.o -o "$work/nvbandwidth" "${boost[@]}" \
        -Xlinker --allow-shlib-undefined -Xlinker "$driver/libnvidia-ml.so.1" -Xlinker "$driver/libcuda.so.1"
}

build_p2p() {
    (cd "$peers/p2p" && nvcc -O3 -std=c++17 -arch=native -ICommon p2pBandwidthLatencyTest.cu -o "$work/p2p")
}

install_lanewise() {
    local pip="python3 -m pip install -q --no-index --no-deps --no-compile --target $work/site"
    if ls "$wheels"/*.whl > /dev/null 2>&1; then
        $pip "$wheels"/*.whl || return
    fi
    ls "$wheels"/lanewise-*.whl > /dev/null 2>&1 || $pip --no-build-isolation .
}

export PYTHONPATH="$work/site"
{
    (build_nvbandwidth) > "$work/nvbandwidth.log" 2>&1 &
    build_p2p > "$work/p2p.log" 2>&1 &
    install_lanewise > "$work/lanewise.log" 2>&1 &
    wait
} 2> /dev/null
cat "$work"/*.log > "$out/build.log"
echo "built after $(($(date +%s) - begun)) s"
{ nvidia-smi; nvidia-smi topo -m; nvidia-smi -q -d CLOCK,PERFORMANCE; nvcc --version; uname -srm; lscpu; head /sys/devices/system/node/online; } \
    > "$out/machine.txt" 2>&1

# Before minutes go into the others' runs: does it run at all?
quick=host_to_device_memcpy_ce,host_device_latency_sm,device_local_copy
timeout 120 python3 -m lanewise.cli.main measure gpu --devices 0 --cases "$quick" > "$out/first.txt" 2>&1 ||
    { echo "lanewise does not run here:"; tail -n 30 "$out/first.txt" "$out/build.log"; exit 2; }

tools=()
for each in nvbandwidth p2p; do
    [ -x "$work/$each" ] && tools+=("--$each" "$work/$each")
done
left=$((total - ($(date +%s) - begun) - 15))
python3 benchmarks/h200/versus.py "${tools[@]}" --out "$work/results" --seconds "$left"
code=$?
cp "$work"/results/versus.* "$out/" && tar -C "$work/results" -czf "$out/raw.tar.gz" raw
[ -x "$work/nvbandwidth" ] && [ -x "$work/p2p" ] || tail -n 20 "$out/build.log"
echo "done after $(($(date +%s) - begun)) s"
exit $code
