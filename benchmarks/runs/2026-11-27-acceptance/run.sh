#!/bin/sh
# Writes what Lanewise says of each input: sh run.sh > after.txt, from this folder; LANEWISE names the command.
LANEWISE=${LANEWISE:-lanewise}
cd inputs || exit 1
show() {
    echo "=== $*"
    COLUMNS=110 $LANEWISE "$@" 2>&1 | grep -v -e '^Nobody described' -e '^  other; --system' | head -60
}
for file in c*; do show check "$file"; done
for file in e*; do show discover --table --from "$file"; done
for file in d*.yaml f*.yaml; do show predict "$file"; done
for file in c*; do $LANEWISE check "$file" > /dev/null 2>&1; echo "exit code $? $file"; done
