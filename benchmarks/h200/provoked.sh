#!/bin/bash
# Faults made on purpose (provoked.py) on a bare machine with GPUs, the CUDA toolkit, Python 3.12 with torch, no network.
#
#     OUT=results bash benchmarks/h200/provoked.sh
#
# PEERS   sources to build here (default .peers): nccl-tests/, nvbandwidth/, p2p/ and bw/ (the CUDA samples' .cu with
#         p2p/Common/), simple/ (the samples simpleP2P and simpleMultiCopy; blog.cu: bandwidthtest.cu of NVIDIA's blog),
#         gpucopy/ (SuperBench's), transferbench/, gpustream/ and cudamemcpy/ (main.cu of gpu-benches' gpu-stream and
#         cuda-memcpy, their headers beside both), torch/ (all_reduce_bench.py of ML engineering), and libnuma and Boost's
#         headers and program_options as Debian packages. The third series needs cudamemcpy/ and those headers alone.
# SECONDS_ALL  for the cases (default 240). ONLY  a regular expression of their names. BUILD  one of the programs to build
#         (default all): ONLY=^third- BUILD='copies|cuda-memcpy'. The fourth series needs nvbandwidth/ and the Debian
#         packages: ONLY=^fourth- BUILD='copies|nvbandwidth'. The fifth needs nothing: ONLY=^fifth- BUILD=none.
set -u
out=$(realpath -m "${OUT:-out/provoked}") peers=$(realpath -m "${PEERS:-.peers}") tools=$(mktemp -d)
mkdir -p "$out/texts" "$tools/nccl"
export PATH="${CUDA_HOME:-/usr/local/cuda}/bin:$PATH" PYTHONUNBUFFERED=1
driver=/usr/lib/x86_64-linux-gnu
for folder in /usr/local/nvidia/lib64 /usr/local/nvidia/lib; do [ -e "$folder/libcuda.so.1" ] && driver=$folder && break; done
for package in "$peers"/*.deb; do dpkg -x "$package" "$tools/boost"; done
ln -s libnuma.so.1 "$tools/boost/usr/lib/x86_64-linux-gnu/libnuma.so" 2> /dev/null
export CPATH=$tools/boost/usr/include LIBRARY_PATH=$tools/boost/usr/lib/x86_64-linux-gnu

build_nvbandwidth() {
    cd "$peers/nvbandwidth" && mkdir -p "$tools/objects" || return
    for file in nvbandwidth.cpp memcpy.cpp json_output.cpp output.cpp testcase.cpp testcases_ce.cpp testcases_sm.cpp kernels.cu json/jsoncpp.cpp; do
        nvcc -O2 -std=c++17 -arch=native -I. -c "$file" -o "$tools/objects/$(basename "$file").o" &
    done
    wait
    nvcc -arch=native "$tools"/objects/*.o -o "$tools/nvbandwidth" "$LIBRARY_PATH/libboost_program_options.a" \
        -Xlinker --allow-shlib-undefined -Xlinker "$driver/libnvidia-ml.so.1" -Xlinker "$driver/libcuda.so.1"
}

build_nccl_tests() {
    local nccl header
    nccl=$(python3 -c 'import pathlib, torch; print(next(pathlib.Path(torch.__file__).parents[1].glob("nvidia/nccl/lib/libnccl.so.2")))')
    [ -e "$nccl" ] || nccl=$(ldconfig -p | sed -n 's|.*=> \(.*/libnccl.so.2\)$|\1|p' | head -n 1)
    header=$(find "$(dirname "$nccl")/.." /usr/include /usr/local -name nccl.h 2> /dev/null | head -n 1)
    mkdir -p "$tools/home/lib" "$tools/home/include" && cp -r "$(dirname "$header")"/nccl* "$tools/home/include/"
    ln -s "$nccl" "$tools/home/lib/libnccl.so" && ln -s "$nccl" "$tools/home/lib/libnccl.so.2"
    local arch
    arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
    cp -r "$peers/nccl-tests" "$tools/tests" && make -C "$tools/tests" -j 12 NCCL_HOME="$tools/home" \
        CUDA_HOME="${CUDA_HOME:-/usr/local/cuda}" NVCC_GENCODE="-gencode=arch=compute_$arch,code=sm_$arch"
    cp "$tools"/tests/build/*_perf "$tools/nccl/"
}

wanted() { [[ $1 =~ ${BUILD:-} ]]; }
wanted nvbandwidth && (build_nvbandwidth) > "$out/nvbandwidth.log" 2>&1 &
wanted nccl-tests && (build_nccl_tests) > "$out/nccl-tests.log" 2>&1 &
compile() {  # compile NAME FOLDER ARGUMENTS: one source with nvcc
    wanted "$1" && (cd "$peers/$2" && nvcc -O2 -std=c++17 -arch=native -I"$peers/p2p/Common" "${@:3}" -o "$tools/$1") > "$out/$1.log" 2>&1
}
compile p2p p2p p2pBandwidthLatencyTest.cu &
compile bw bw bandwidthTest.cu &
compile simpleP2P simple simpleP2P.cu &
compile simpleMultiCopy simple simpleMultiCopy.cu &
compile blog simple blog.cu &
compile gpu_copy gpucopy gpu_copy.cu -lnuma -lcuda &
compile gpu-stream gpustream main.cu &
compile cuda-memcpy cudamemcpy main.cu &
compile copies . "$PWD/benchmarks/h200/provoked_copies.cu" &
compile transferbench transferbench -Iinclude -x cu TransferBench.cpp -lnuma -lpthread &
printf '#!/bin/sh\nexec python3 -u -m torch.distributed.run --nproc_per_node "$(nvidia-smi -L | wc -l)" %s/torch/all_reduce_bench.py "$@"\n' \
    "$peers" > "$tools/torch_all_reduce" && chmod +x "$tools/torch_all_reduce"
cp benchmarks/h200/provoked_{torch,scripts,forms,notebooks,prints}.py "$tools"
printf '#!/bin/sh\nexec python3 -u -W ignore %s/provoked_torch.py "$@"\n' "$tools" > "$tools/bench"
printf '#!/bin/sh\nexec python3 -u -W ignore %s/provoked_scripts.py "$@"\n' "$tools" > "$tools/scripts"
printf '#!/bin/sh\nexec python3 -u -W ignore %s/provoked_notebooks.py "$@"\n' "$tools" > "$tools/notebooks"
chmod +x "$tools/bench" "$tools/scripts" "$tools/notebooks"
wait
ls -l "$tools" "$tools/nccl" | head -n 40
export LD_LIBRARY_PATH="$tools/home/lib:$tools/boost/usr/lib/x86_64-linux-gnu:$driver:${LD_LIBRARY_PATH:-}"
{ nvidia-smi -L; nvidia-smi topo -m; lscpu; } > "$out/texts/dumps.txt" 2>&1
{ nvidia-smi topo -p2p r; nvidia-smi nvlink -s; nvidia-smi -q; numactl -H; } > "$out/texts/more.txt" 2>&1
python3 benchmarks/h200/provoked.py run --tools "$tools" -o "$out/texts" --seconds "${SECONDS_ALL:-240}" --only "${ONLY:-}"
tail -n 5 "$out"/*.log
mv "$out"/*.log "$out/texts/"; tar -C "$out" -czf "$out/texts.tar.gz" texts && rm -r "$out/texts" "$tools"
