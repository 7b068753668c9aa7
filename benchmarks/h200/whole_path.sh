#!/bin/bash
# The four questions on a bare machine with two GPUs, Python 3.12 and no network, as a user asks them: what is there, what
# should it deliver, what does it deliver, is that normal. Predictions are written before anything is measured.
#
#     OUT=results bash benchmarks/h200/whole_path.sh
#
# WHEELS as in run.sh; Python files of the tree replace theirs.
set -u
out=$(realpath -m "${OUT:-out/whole-path}") wheels=$(realpath -m "${WHEELS:-.wheels}") site=$(mktemp -d)
mkdir -p "$out"
python3 -m pip install -q --no-index --no-deps --no-compile --target "$site" "$wheels"/*.whl || exit 2
(cd src && find lanewise -name '*.py' -print0 -o -name '*.yaml' -print0 | tar --null -T - -cf -) | tar -C "$site" -xf -
export PYTHONPATH=$site PYTHONUNBUFFERED=1
{ nvidia-smi; nvidia-smi topo -m; uname -srm; lscpu; } > "$out/machine.txt" 2>&1
cd "$out" || exit 2
answer() {  # answer NAME VERB...: its output as NAME.txt
    local name=$1
    shift
    timeout 150 python3 -m lanewise.cli.main "$@" > "$name.txt" 2>&1
    echo "== $name: $?"
}
sets='host0->gpu0; gpu0->host0; gpu0->gpu1; gpu0<->gpu1; host0<->gpu0; host0->gpu[0-1]; gpu[0-1]->host0; host0<->gpu[0-1]; host0->gpu0, gpu0->gpu1, gpu1->host0'
answer discover discover -o machine.yaml
number=0
while read -r flows; do
    number=$((number + 1))
    answer "predict-$number" predict machine.yaml --flows "$flows"
done < <(tr ';' '\n' <<< "$sets" | sed 's/^ *//')
for collective in all_reduce all_gather all_to_all sendrecv; do
    answer "predict-$collective" predict machine.yaml --collective "$collective" --ranks 'gpu[0-1]' --sizes 64MiB,1GiB
done
answer measure measure gpu -o gpu.run.json
answer check check gpu.run.json --system machine.yaml
number=0
while read -r flows; do
    number=$((number + 1))
    answer "measure-$number" measure gpu --flows "$flows" -o "set-$number.run.json"
done < <(tr ';' '\n' <<< "$sets" | sed 's/^ *//')
answer measure-collectives measure collectives --devices 'gpu[0-1]' --collective all_reduce,all_gather,all_to_all,sendrecv --sizes 64MiB,1GiB -o collectives.run.json
answer check-collectives check collectives.run.json --system machine.yaml
tar -czf all.tar.gz --exclude all.tar.gz .
find . -type f ! -name all.tar.gz -delete
rm -r "$site"
