#!/bin/sh
# The README's tour. Expect: a route and its class, a prediction with its limit, a study of one's own that runs as it
# is written, and its report. Works in a folder of its own and removes it.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

lanewise route cirrascale-typical gpu0 gpu7
lanewise predict cirrascale-typical --flows 'gpu0->gpu1, gpu2->gpu7'
lanewise predict composable-server-gen4 --set path=4 --flows 'host0->gpu0 1 GiB, host0->gpu1 2 GiB'
lanewise study new mine
lanewise study run mine.yaml -o mine.html --json mine.json --check
lanewise report mine.json -o again.html
test -s again.html
lanewise system attach composable-server-two-hosts gpu4 host1 -o moved.yaml
lanewise predict moved.yaml --flows 'host1->gpu4'
