# The only entries for people, hooks and CI.
PORT ?= 8000
DATA ?= var

.PHONY: setup run lock format
.DEFAULT_GOAL := setup

setup:
	@deploy/scripts/setup.sh

run: setup
	@exec .venv/bin/python manage.py up --port $(PORT) --data "$(DATA)"

lock: setup
	@deploy/scripts/lock.sh requirements

format: setup
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix .
