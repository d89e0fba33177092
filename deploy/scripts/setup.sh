#!/bin/sh
# Makes .venv from the locked requirements, builds native/ and compiles the translations. Needs python3 >= 3.11 and a C
# compiler; everything else comes from the package index. Does nothing when nothing has changed.
#
# .venv/.installed is written last and names what was installed where: without it, or when the
# checkout has moved, .venv is made anew; when only the requirements differ, it is updated in place.
set -eu
cd "$(dirname "$0")/../.."

fail() {
    echo "setup: $*" >&2
    exit 1
}

usable_python() {
    for name in python3 python3.13 python3.12 python3.11; do
        if "$name" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$name"
            return
        fi
    done
    fail "needs Python 3.11 or newer with the venv module (on Debian: apt-get install python3 python3-venv)"
}

native() {
    if [ -f native/Makefile ]; then
        make -s -C native
    fi
}

messages() {
    for po in frontend/locale/*/LC_MESSAGES/django.po; do
        mo=${po%.po}.mo
        if [ ! -f "$mo" ] || [ "$po" -nt "$mo" ]; then
            .venv/bin/python deploy/scripts/messages.py compile
        fi
    done
}

command -v "${CC:-cc}" >/dev/null || fail "needs a C compiler named ${CC:-cc} (on Debian: apt-get install gcc libc6-dev)"

exec 9<.
flock 9

stamp=.venv/.installed
place=$(pwd -P)
content=$(cat requirements/uv.txt requirements/dev.txt pyproject.toml deploy/scripts/setup.sh | sha256sum | cut -d' ' -f1)

if [ -x .venv/bin/python ] && [ "$(cat $stamp 2>/dev/null)" = "$content $place" ]; then
    native
    messages
    exit
fi

python=$(usable_python)
case "$(cat $stamp 2>/dev/null)" in
    *" $place") [ -x .venv/bin/python ] || rm -rf .venv ;;
    *) rm -rf .venv ;;
esac
rm -f $stamp
[ -d .venv ] || "$python" -m venv .venv

export UV_HTTP_TIMEOUT="${UV_HTTP_TIMEOUT:-120}"
echo "setup: installing the locked requirements into .venv"
.venv/bin/python -m pip install --quiet --disable-pip-version-check --root-user-action ignore \
    --require-hashes --requirement requirements/uv.txt
.venv/bin/uv pip sync --quiet --python .venv/bin/python --require-hashes requirements/dev.txt
.venv/bin/uv pip install --quiet --python .venv/bin/python --no-deps --no-build-isolation --editable .
native
messages
echo "$content $place" >$stamp
