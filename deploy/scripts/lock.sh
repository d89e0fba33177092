#!/bin/sh
# Resolves the requirements into the given folder, keeping the versions that are locked there.
# dev.txt decides the versions; the other files are cuts of it.
set -eu
cd "$(dirname "$0")/../.."
folder=${1:?folder for the locked files}

compile() {
    name=$1
    shift
    .venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
        --custom-compile-command 'make lock' --output-file "$folder/$name.txt" "$@"
}

compile uv requirements/uv.in
compile dev pyproject.toml --extra portal --extra agent --group dev
compile client pyproject.toml --constraints "$folder/dev.txt"
compile portal pyproject.toml --constraints "$folder/dev.txt" --extra portal
compile agent pyproject.toml --constraints "$folder/dev.txt" --extra agent
