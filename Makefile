# make run: the main pipeline on generated sample data. make test: all tests. Both set up what they need first.
.PHONY: setup run test lint sample clean

LAKELET = .venv/bin/lakelet
ROWS = 20000

setup:
	@sh scripts/setup.sh

run: sample
	@$(LAKELET) run --param landing=sample/landing

sample: setup
	@test -d sample/landing || $(LAKELET) sample --rows $(ROWS) --seed 1 --out sample

test: setup
	@.venv/bin/python -m pytest

lint: setup
	@.venv/bin/ruff check
	@.venv/bin/mypy
	@.venv/bin/lint-imports

# What make run and make test made, all but the caches of the user's home folder.
clean:
	rm -rf .venv .lakelet sample .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
