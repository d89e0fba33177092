#!/bin/sh
# Runs the tests in parts; a part that fails does not hide the next. Parts: sqlite postgres topology
# e2e soak.
set -u
cd "$(dirname "$0")/../.."

failed=
part() {
    name=$1
    shift
    echo "== tests: $name"
    .venv/bin/python -m pytest -p no:cacheprovider --randomly-seed=1 "$@" || failed="$failed $name"
}

for name in "$@"; do
    case $name in
        sqlite) part sqlite --backend sqlite -n 2 --ignore tests/e2e --ignore tests/crash --ignore tests/topology tests ;;
        postgres) part postgres --backend postgres -n 2 $(ls -d tests/db tests/api tests/web tests/stateful tests/migrations tests/ops 2>/dev/null) ;;
        topology) part topology --backend postgres tests/topology ;;
        e2e) part e2e --backend sqlite tests/e2e tests/crash ;;
        soak)
            part soak --backend sqlite -m soak --timeout 1800 --ignore tests/topology tests
            part soak-topology --backend postgres -m soak --timeout 1800 tests/topology
            part soak-postgres --backend postgres tests/e2e tests/crash
            ;;
        *) echo "no part named $name" >&2; exit 2 ;;
    esac
done

if [ -n "$failed" ]; then
    echo "FAILED parts of the tests:$failed"
    exit 1
fi
