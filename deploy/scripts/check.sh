#!/bin/sh
# Everything that can be judged without running the product. All checks run; the failed ones show
# their output and are named at the end.
set -u
cd "$(dirname "$0")/../.."

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM HUP
mkdir "$scratch/data" "$scratch/requirements"
PATH=$PWD/.venv/bin:$PATH
export PATH DJANGO_SETTINGS_MODULE=portal.settings GPUCOMMONS_DATA="$scratch/data"

failed=
check() {
    name=$1
    shift
    started=$(date +%s)
    if "$@" >"$scratch/output" 2>&1; then
        echo "ok      $name ($(($(date +%s) - started)) s)"
    else
        echo "FAILED  $name: $*"
        cat "$scratch/output"
        failed="$failed $name"
    fi
}

templates() {
    find frontend/templates -name '*.html' -exec djade --check --target-version 5.2 {} +
}

deployment() {
    GPUCOMMONS_PUBLIC_URL=https://gpus.example.org GPUCOMMONS_ALLOWED_HOSTS='["gpus.example.org"]' \
        python manage.py check --deploy --fail-level WARNING
}

openapi() {
    python manage.py spectacular --validate --fail-on-warn --file "$scratch/openapi.yaml" &&
        diff -u docs/reference/openapi.yaml "$scratch/openapi.yaml" ||
        { echo "make openapi writes it again"; return 1; }
}

requirements() {
    cp requirements/*.txt "$scratch/requirements/" &&
        deploy/scripts/lock.sh "$scratch/requirements" &&
        { diff -r --exclude uv.in requirements "$scratch/requirements" || { echo "make lock writes them again"; return 1; }; }
}

check format ruff format --check .
check lint ruff check .
check templates templates
check types mypy
check imports lint-imports
check migrations python manage.py makemigrations --check --dry-run
check deployment deployment
check openapi openapi
check requirements requirements

if [ -n "$failed" ]; then
    echo "failed checks:$failed"
    exit 1
fi
