# make study     install into .venv (with the extra report), run the ready studies, write out/report.html
# make test      linters, types, layers, tests
# make guests    tests that boot a guest kernel or a browser: RDMA verbs, emulated servers, the web page
# make ray       tests that start a Ray on loopback: a worker that is killed, nodes, a resumed run
# make nightly   what takes long: 100 new examples of every property, all kills in a Ray, ten minutes of fuzz, tsan
# make examples  run every example
# make wheel     an sdist and a wheel in dist/, for glibc 2.17 and later
# make sanitize  unit tests of the native core under AddressSanitizer and UndefinedBehaviorSanitizer (make tsan: ThreadSanitizer)
# make tidy      clang-tidy over the native core, minutes; FILES="native/network/*.cpp" for some
# make fuzz      read mutated files for SECONDS=60; SEED=N for the same ones again
# make accuracy  write docs/accuracy.md and the errors that predict shows from a fresh run
# make man       write docs/man/lanewise.1 from the verbs and options
# make api       write docs/reference/api.md from the docstrings
# make bench     benchmarks
# make clean     remove what the build made (make distclean: .venv as well)
# Needs Python 3.11 or newer, a C++20 compiler and make. PYTHON=python3.12 chooses another interpreter.

# Each of the hundreds of processes that tests and studies start would compile every module again.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
NATIVE := $(shell find native -type f \( -name '*.cpp' -o -name '*.hpp' -o -name '*.ptx' -o -name '*.cmake' -o -name '*.in' -o -name CMakeLists.txt \))
TESTS  := -m "not guest and not ray and not nightly"
MODULES := $(shell find src -name '*.py' | LC_ALL=C sort | cksum | tr -d ' ')
PIP    := $(BIN)/python -m pip --disable-pip-version-check -q

.PHONY: study test checks checks-of-code checks-of-tests guests ray nightly examples accuracy man api wheel sanitize tsan tidy fuzz bench clean distclean install dev
.DELETE_ON_ERROR:

study: install
	@mkdir -p out
	@$(BIN)/lanewise study run all -o out/report.html --json out/run.json
	@echo "report: $(CURDIR)/out/report.html"

# Collecting compiles the tests once; each worker of a first run would compile them all. What fails there fails again.
test: dev
	@ls -d tests/*/ tests/*.py | xargs -n 20 -P 2 $(BIN)/python -m pytest --collect-only -qq >/dev/null 2>&1 || true
	@# more workers than a small machine has cores: tests of real load wait for a third of their time
	$(BIN)/python -m pytest -n 5 --hypothesis-profile=ci $(TESTS)

# Linters, types and import contracts; types of tests beside the rest.
checks: dev
	@$(MAKE) --no-print-directory -j 2 checks-of-code checks-of-tests

checks-of-code: dev
	$(BIN)/ruff check
	$(BIN)/clang-format --dry-run -Werror $(filter %.cpp %.hpp,$(NATIVE))
	$(BIN)/mypy --strict
	MYPYPATH=src:benchmarks:benchmarks/h200:tests $(BIN)/mypy --strict benchmarks/*.py benchmarks/h200/*.py
	$(BIN)/lint-imports

checks-of-tests: dev
	$(BIN)/mypy --config-file tests/mypy.ini

# RDMA verbs and emulated servers in guests, the web page in Chromium; each skips with the reason where something is missing.
guests: dev
	$(BIN)/python -m pytest -n 2 --hypothesis-profile=ci -m guest -rs

ray: dev $(VENV)/.requires-ray
	$(BIN)/python -m pytest --hypothesis-profile=ci -m "ray and not nightly" -rs

# One after the other, also after one that failed; the recipe fails if any did.
nightly: dev $(VENV)/.requires-ray
	@failed=0; \
	$(BIN)/python -m pytest -n 5 --hypothesis-profile=fresh -m "not guest and not ray" || failed=1; \
	$(BIN)/python -m pytest --hypothesis-profile=fresh -m ray -rs || failed=1; \
	make --no-print-directory fuzz SECONDS=600 || failed=1; \
	make --no-print-directory tsan || failed=1; \
	exit $$failed

examples: install $(VENV)/.requires-plan
	@for program in examples/*.py; do echo "== $$program"; $(BIN)/python $$program || exit 1; done
	@for program in examples/*.sh; do echo "== $$program"; PATH="$(CURDIR)/$(BIN):$$PATH" sh $$program || exit 1; done

accuracy: install
	@mkdir -p out
	$(BIN)/lanewise study run all --json out/run.json
	$(BIN)/lanewise accuracy --studies out/run.json -o src/lanewise/data/accuracy.json
	$(BIN)/lanewise accuracy --services --after-measurement --studies out/run.json --history benchmarks/runs/2026-11-23-accuracy -o docs/accuracy.md

man: install
	$(BIN)/python docs/man/generate.py

api: install
	$(BIN)/python docs/reference/generate_api.py

wheel: $(VENV)/.tools
	@packaging/make_wheel.sh $(abspath $(BIN))/python

# Unit tests of the native core under AddressSanitizer and UndefinedBehaviorSanitizer, and under ThreadSanitizer. No comma in
# the folder's name: the linker's -Wl,-rpath,FOLDER would end there.
comma := ,
sanitize: build/sanitize-address+undefined/passed
tsan: build/sanitize-thread/passed
build/sanitize-%/passed: $(NATIVE)
	@command -v cmake >/dev/null && echo '#include <gtest/gtest.h>' | $${CXX:-c++} -x c++ -E - >/dev/null 2>&1 || { echo "error: cmake or GoogleTest is missing; install cmake and libgtest-dev" >&2; exit 1; }
	@cmake -S native/tests -B $(@D) -DSANITIZE=$(subst +,$(comma),$*) >/dev/null
	@cmake --build $(@D) -j 2
	@ctest --test-dir $(@D) --output-on-failure
	@touch $@

# Needs GoogleTest, as the tests' build names the commands; what is not part of it, or includes nanobind, is left out.
FILES ?= $(filter-out native/bindings/% native/loadgen/% native/tests/% %/bindings.cpp %/python_engine.cpp,$(filter %.cpp,$(NATIVE)))
tidy: dev
	@$(PIP) install clang-tidy==19.1.0
	@PATH="$(CURDIR)/$(BIN):$$PATH" cmake -S native/tests -B build/tidy -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >/dev/null
	@echo $(FILES) | xargs -n 1 -P 2 $(BIN)/clang-tidy -p build/tidy --quiet

# Inputs that fail are kept, as small as found, in tests/fuzz/failures; mended ones go to tests/fuzz/corpus.
SECONDS ?= 60
fuzz: dev
	cd tests && ../$(BIN)/python -m fuzz.fuzzer --seconds $(SECONDS) $(if $(SEED),--seed $(SEED)) $(if $(FAMILY),--family $(FAMILY))

bench: dev
	$(BIN)/python benchmarks/flow_simulation.py
	$(BIN)/python benchmarks/studies.py

install: $(VENV)/.requires-report $(VENV)/.installed
dev: $(VENV)/.requires-dev $(VENV)/.installed

# Sources are used in place. A change of the project file, of C++ or of the list of modules (which the editable install
# has written down) builds again.
$(VENV)/.installed: $(VENV)/.tools pyproject.toml CMakeLists.txt $(NATIVE) $(VENV)/.modules-$(MODULES)
	@echo "building lanewise into $(VENV)"
	@$(PIP) install --no-build-isolation --no-deps --config-settings=editable.mode=redirect -e .
	@touch $@

$(VENV)/.modules-%: | $(BIN)/python
	@rm -f $(VENV)/.modules-*
	@touch $@

# The requirements of Lanewise and of an extra. Modules are compiled when they are first imported: most of them never are.
$(VENV)/.requires-%: pyproject.toml packaging/requirements.py | $(BIN)/python
	@echo "installing what lanewise[$*] requires"
	@$(BIN)/python packaging/requirements.py $* > $(VENV)/requires-$*.txt
	@$(PIP) install --no-compile -r $(VENV)/requires-$*.txt
	@touch $@

# Build requirements live in the venv, so that a second build reuses the first one's objects; scikit-build-core says
# whether cmake and ninja are among them.
$(VENV)/.tools: pyproject.toml | $(BIN)/python
	@c++ --version >/dev/null 2>&1 || $${CXX:-c++} --version >/dev/null || { echo "error: no C++ compiler; install g++ 11 or clang 14 or newer, or set CXX" >&2; exit 1; }
	@$(BIN)/python -c 'import tomllib; print("\n".join(tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"]))' > $(VENV)/build-requires.txt
	@$(PIP) install --no-compile -r $(VENV)/build-requires.txt
	@$(BIN)/python -c 'from scikit_build_core.build import get_requires_for_build_editable as requires; print("\n".join(requires({})))' >> $(VENV)/build-requires.txt
	@$(PIP) install --no-compile -r $(VENV)/build-requires.txt
	@touch $@

# Debian splits venv from python3; then virtualenv, or pip of the system, fills the new environment.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "error: $(PYTHON) is older than 3.11; set PYTHON=" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) 2>/dev/null && test -x $(BIN)/pip \
	|| { rm -rf $(VENV); $(PYTHON) -m virtualenv -q $(VENV) 2>/dev/null; } \
	|| { $(PYTHON) -m venv --without-pip $(VENV) && $(PYTHON) -m pip -q --python $(VENV)/bin/python install pip; } \
	|| { echo "error: no virtual environment can be made; install python3-venv or virtualenv" >&2; rm -rf $(VENV); exit 1; }

clean:
	rm -rf build out dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache .benchmarks
	rm -f src/lanewise/_native.*.so $(VENV)/.installed $(VENV)/.requires-*

distclean: clean
	rm -rf $(VENV)
