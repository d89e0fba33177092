#!/bin/sh
# Installs what the tests start themselves: PostgreSQL, Redis and Chromium, as Debian packages and
# only where missing. No daemon of theirs is started. Where it may not install, it lists what is missing.
set -eu

has_postgres() {
    command -v initdb >/dev/null && command -v postgres >/dev/null && return
    ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1
}

missing=
has_postgres || missing="$missing postgresql"
command -v redis-server >/dev/null || missing="$missing redis-server"
command -v chromium >/dev/null || missing="$missing chromium"
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -eq 0 ]; then
    as_root=
elif sudo -n true 2>/dev/null; then
    as_root=sudo
else
    as_root=none
fi

if [ "$as_root" = none ] || ! command -v apt-get >/dev/null; then
    echo "The tests need these programs, which this user cannot install here:" >&2
    for package in $missing; do
        echo "  $package (the name of its Debian package)" >&2
    done
    exit 1
fi

# A policy that answers 101 forbids every service start during the installation.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
    printf '#!/bin/sh\nexit 101\n' | $as_root tee $policy >/dev/null
    trap '$as_root rm -f $policy' EXIT
    trap 'exit 130' INT TERM HUP
    $as_root chmod 755 $policy
fi

apt() {
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 "$@" </dev/null >/dev/null
}

echo "installing for the tests:$missing"
for attempt in 1 2 3; do
    # shellcheck disable=SC2086
    if apt update && apt install --no-install-recommends --yes $missing; then
        exit 0
    fi
    echo "apt-get failed (attempt $attempt of 3)" >&2
    sleep $((attempt * 5))
done
exit 1
