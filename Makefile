# The only entries for people, hooks and CI.
PORT ?= 8000
DATA ?= var

.DEFAULT_GOAL := setup
.PHONY: setup run check test test-quick soak openapi messages screenshots lock format

setup:
	@deploy/scripts/setup.sh

run: setup
	@exec .venv/bin/python manage.py up --port "$(PORT)" --data "$(DATA)"

check: setup
	@deploy/scripts/check.sh

test: setup
	@deploy/scripts/install-test-services.sh
	@deploy/scripts/test.sh sqlite postgres topology e2e

test-quick: setup
	@deploy/scripts/test.sh sqlite

soak: setup
	@deploy/scripts/install-test-services.sh
	@deploy/scripts/test.sh soak

openapi: setup
	@mkdir -p docs/reference
	@.venv/bin/python manage.py spectacular --validate --fail-on-warn --file docs/reference/openapi.yaml
	@.venv/bin/python manage.py error_reference
	@.venv/bin/python manage.py config_reference

messages: setup
	@.venv/bin/python deploy/scripts/messages.py extract
	@.venv/bin/python deploy/scripts/messages.py compile

screenshots: setup
	@deploy/scripts/install-test-services.sh
	@.venv/bin/python -m tests.e2e.screenshots var/screenshots
	@echo "The pictures are in var/screenshots."

lock: setup
	@deploy/scripts/lock.sh requirements

format: setup
	@.venv/bin/ruff format .
	@.venv/bin/ruff check --fix .
