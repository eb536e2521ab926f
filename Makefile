# make run: the main pipeline on generated sample data. make factory, make audit, make web: the systems in examples/, two deliveries each.
# make test: the tests, but for the long ones. All of them set up what they need first.
# make test-crash: an update killed at every point where it may die. make test-long: a third of what takes more than three seconds.
# make test-slow: what CI leaves to the night: more cases of sweeps, repetitions, what takes minutes. Two hours; nightly.yml runs its parts.
# make test-adaptive: all Spark tests with adaptive execution, as Spark runs for much or unknown input; by night.
# make test-cloud: updates on S3, Google's store, Azure and HDFS and on a cluster of two workers, topics of Kafka, tables in a Hive metastore; fetches 165 MB of jars and Azurite once; by night.
# make test-browser: the page driven in Chromium; two minutes.
# make constraints: the versions that set-up installs, written again with the newest ones.
# make coverage: which lines the tests below Spark reach. make docs: the site of the documentation; make pictures: the pictures in it.
.PHONY: setup ready doctor ci-parts rooms run factory audit web test test-plain test-oldest on-oldest test-spark test-adaptive test-crash test-long test-long-changes test-long-others \
	test-slow test-slow-changes test-slow-autoloader test-slow-crash test-slow-others test-cloud test-catalogs chromium test-browser coverage pictures corpus \
	test-conformance lint docs sample constraints clean

# The parts of CI, each a target of this file with its cap in minutes. `.ci/run` runs them in this order, .github/workflows/ci.yml as jobs.
CI_PARTS = doctor:4 lint:2 test-oldest:4 test:20 test-crash:21 test-long-changes:9 test-long-others:18 test-catalogs:4 test-browser:4 test-conformance:3
LAKELET = .venv/bin/lakelet
PYTHON = .venv/bin/python
ROWS = 20000
# One process per core, each with a session of its own; a file's tests stay together.
PROCESSES = $(shell nproc 2>/dev/null || echo 2)
PARALLEL = -n $(PROCESSES) --dist loadfile
# Where single tests take long, a process that has ended takes from the others, also out of a file.
STEALING = -n $(PROCESSES) --dist worksteal

setup:
	@sh scripts/setup.sh

# What running needs, without the tools of developers.
ready:
	@sh scripts/setup.sh running

doctor: setup
	@$(LAKELET) doctor

ci-parts:
	@echo $(CI_PARTS)

run: sample
	@$(LAKELET) run

sample: ready
	@test -d sample/landing || $(PYTHON) examples/contact-center/generate.py sample --rows $(ROWS) --seed 1

# The commands of the example's README in its folder. Done again, they write the same files and find nothing new.
IN_EXAMPLE = cd examples/$@ && PATH="$(CURDIR)/.venv/bin:$$PATH"

factory: ready
	@$(IN_EXAMPLE) \
		&& python generate.py landing --drops 8 --boxes-per-drop 12 --seed 1 \
		&& lakelet run \
		&& python generate.py landing --drops 8 --boxes-per-drop 12 --seed 1 --start-drop 8 \
		&& lakelet run \
		&& lakelet show bottlenecks \
		&& lakelet sql "SELECT factory, _values, _file FROM broken_lines LIMIT 5"

audit: ready
	@$(IN_EXAMPLE) \
		&& python generate.py landing \
		&& lakelet run \
		&& python generate.py landing --late \
		&& lakelet run \
		&& lakelet sql "SELECT user_arn, sum(denied) AS denied FROM principals_daily GROUP BY user_arn ORDER BY denied DESC LIMIT 5"

web: ready
	@$(IN_EXAMPLE) \
		&& export LAKELET_SECRET_WEB_PII_KEY="only for the example: 32 bytes" \
		&& python generate.py 1 \
		&& lakelet run --param landing=landing \
		&& python generate.py 2 \
		&& lakelet run --param landing=landing \
		&& lakelet show purchases_items

test: setup
	@.venv/bin/python -m pytest $(PARALLEL)

# What needs no Spark, by the tests of the rooms below it: what CI runs on macOS.
PLAIN = not spark and not crash and not slow and not long and not cloud and not conformance and not browser
test-plain: setup
	@.venv/bin/python -m pytest $(PARALLEL) -m "$(PLAIN)" tests/unit

test-adaptive: setup
	@LAKELET_TEST_ADAPTIVE=1 .venv/bin/python -m pytest $(PARALLEL) -m "not crash and not slow and not cloud" tests/spark

# The oldest Python that is promised, in an environment of its own: what runs without Java.
OLDEST = .lakelet/python3.10
PYTHON310 ?= $(firstword $(wildcard $(HOME)/.pyenv/versions/3.10.*/bin/python3.10) python3.10)
test-oldest: setup
	@if $(PYTHON310) --version >/dev/null 2>&1; then $(MAKE) -s on-oldest; else echo "There is no Python 3.10: nothing of it is tried here" >&2; fi

on-oldest:
	@test $(OLDEST)/installed -nt pyproject.toml -a $(OLDEST)/installed -nt constraints.txt || { $(PYTHON310) -m venv $(OLDEST) && $(OLDEST)/bin/python -m pip install -q --disable-pip-version-check uv \
		&& $(OLDEST)/bin/uv pip install -q --python $(OLDEST)/bin/python --constraint constraints.txt --editable . --group dev && touch $(OLDEST)/installed; }
	@$(OLDEST)/bin/python -m pytest -p no:cacheprovider $(PARALLEL) -m "$(PLAIN)" \
		tests/unit/base tests/unit/cli tests/unit/config tests/unit/files tests/unit/house tests/unit/language \
		tests/unit/plan tests/unit/testing tests/unit/update tests/unit/spark/test_patches.py tests/unit/spark/test_python_files.py

# The tests on another pyspark, such as `make test-spark PYSPARK=4.2.1`, in an environment of its own (docs/decisions/0101-spark-versions.md).
PYSPARK ?= 4.2.1
OTHER = .lakelet/pyspark-$(PYSPARK)
test-spark: setup
	@test $(OTHER)/installed -nt pyproject.toml || { $(PYTHON) -m venv $(OTHER) && $(OTHER)/bin/python -m pip install -q --disable-pip-version-check uv \
		&& $(OTHER)/bin/uv pip install -q --python $(OTHER)/bin/python --constraint constraints.txt --editable . --group dev \
		&& $(OTHER)/bin/uv pip install -q --python $(OTHER)/bin/python --no-deps pyspark==$(PYSPARK) && touch $(OTHER)/installed; }
	@$(OTHER)/bin/python -m pytest -p no:cacheprovider $(PARALLEL) tests/spark

test-crash: setup
	@.venv/bin/python -m pytest $(STEALING) -m "crash and not slow" --durations=20 tests/crash tests/deploy

# In two parts, each in Java processes of its own: one process does not have the memory for all of them.
test-long: setup
	@$(MAKE) -j1 test-long-changes test-long-others

test-long-changes: setup
	@.venv/bin/python -m pytest $(STEALING) -rs -m "long and not slow" --durations=20 tests/spark/cdc

test-long-others: setup
	@.venv/bin/python -m pytest $(STEALING) -rs -m "long and not slow" --durations=20 --ignore=tests/spark/cdc

# In parts as well: the nightly workflow runs them beside each other.
SLOW = .venv/bin/python -m pytest $(STEALING) -rs -m "slow and not cloud" --timeout 3000 --durations=20
test-slow: setup
	@$(MAKE) -k -j1 test-slow-changes test-slow-autoloader test-slow-crash test-slow-others

test-slow-changes: setup
	@$(SLOW) tests/spark/cdc tests/unit/cdc

test-slow-autoloader: setup
	@$(SLOW) tests/spark/autoloader tests/unit/autoloader

test-slow-crash: setup
	@$(SLOW) tests/crash

test-slow-others: setup
	-@.venv/bin/python tests/conformance/corpus.py
	@$(SLOW) $(foreach folder,spark/cdc unit/cdc spark/autoloader unit/autoloader crash,--ignore=tests/$(folder))

test-cloud: setup
	@.venv/bin/python -m pytest -m cloud --timeout 3000 tests/cloud

# The part of it that fetches nothing.
test-catalogs: setup
	@.venv/bin/python -m pytest -m "cloud and not slow" --timeout 250 tests/cloud/test_hive_metastore.py

# The page, driven in the Chromium of the system.
chromium:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null \
		|| { test "$$(id -u)" = 0 && { apt-get install -y -qq chromium || { apt-get update -qq && apt-get install -y -qq chromium; }; }; } \
		|| echo "There is no Chromium: its tests are skipped, each by name. Type: sudo apt-get install chromium" >&2

test-browser: setup chromium
	@.venv/bin/python -m pytest $(PARALLEL) -m browser tests/browser

# The pictures in docs/images, drawn again by the tests that look at them, where they show something else.
pictures: setup
	@LAKELET_UPDATE_GOLDEN=1 .venv/bin/python -m pytest -m "" tests/docs/test_readme.py tests/browser/test_pictures.py

# What each module is for.
rooms: setup
	@.venv/bin/python scripts/rooms.py

coverage: setup
	@.venv/bin/python -m coverage erase
	@.venv/bin/python -m coverage run --parallel-mode -m pytest $(PARALLEL) \
		-m "$(PLAIN)" tests/unit
	@.venv/bin/python -m coverage combine --quiet
	@.venv/bin/python -m coverage report

# Other people's pipelines, run as they are: fetched once (tests/conformance/README.md), what could not be fetched is skipped.
corpus: setup
	@.venv/bin/python tests/conformance/corpus.py

test-conformance: setup
	-@.venv/bin/python tests/conformance/corpus.py
	@.venv/bin/python -m pytest -rs -m "conformance and not slow" tests/conformance

# The site of the documentation, in site/; needs no network.
docs: setup
	@NO_MKDOCS_2_WARNING=1 .venv/bin/python -m mkdocs build

# For every Python that is promised and every system: the markers in the file choose.
constraints: setup
	@{ sed '/^[^#]/,$$d' constraints.txt; .venv/bin/uv pip compile -q pyproject.toml --group dev --universal --python-version 3.10 \
		--upgrade --no-header --no-annotate --no-emit-index-url; } >constraints.new && mv constraints.new constraints.txt

lint: setup
	@.venv/bin/ruff check
	@.venv/bin/ruff format --check
	@.venv/bin/mypy
	@.venv/bin/lint-imports

# What the other targets made, all but the caches of the user's home folder.
clean:
	rm -rf .venv .lakelet sample examples/*/landing examples/*/.lakelet .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
