#!/bin/bash
# deps.sh: install the Debian packages that Hooktrail needs and that are missing.
#
#   deploy/deps.sh           to build and run
#   deploy/deps.sh --check   to test, too
#
# As root, or by sudo, after saying what. Does nothing, fast, when all is there.
set -euo pipefail

build=(build-essential pkg-config libmicrohttpd-dev libjansson-dev libsqlite3-dev
       libcurl4-openssl-dev libpcre2-dev libyaml-dev libssl-dev libpq-dev librdkafka-dev
       jq python3 curl)
check=(libcmocka-dev clang clang-tidy clang-format libclang-rt-14-dev universal-ctags
       postgresql kcat python3-pytest python3-jsonschema python3-psycopg2 python3-yaml
       maven default-jre-headless man-db)

case ${1:-} in
'') wanted=("${build[@]}") ;;
--check) wanted=("${build[@]}" "${check[@]}") ;;
*) echo "usage: deploy/deps.sh [--check]" >&2; exit 2 ;;
esac

if ! command -v dpkg-query > /dev/null; then
    echo "deps.sh: this is no Debian; please install what these contain: ${wanted[*]}" >&2
    exit 0
fi

# One question for all: a package that is not known to dpkg is missing, too.
have=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${wanted[@]}" 2> /dev/null |
       sed -n 's/^installed //p' || true)
missing=()
for package in "${wanted[@]}"; do
    grep -qxF "$package" <<< "$have" || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
    exit 0
fi

echo "Installing Debian packages: ${missing[*]}"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo > /dev/null; then
        echo "deps.sh: run as root: apt-get install ${missing[*]}" >&2
        exit 3
    fi
    echo "(by sudo: it may ask for your password)"
    as_root=(sudo)
fi
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
no_cluster=
clean_up() {
    rm -f "$log"
    [ -z "$no_cluster" ] || "${as_root[@]}" rm -f "$no_cluster"
}
trap clean_up EXIT
# PostgreSQL's package makes and starts a server when it is installed; the tests start their own.
if [[ " ${missing[*]} " == *" postgresql "* ]]; then
    no_cluster=/etc/postgresql-common/createcluster.d/hooktrail-deps.conf
    "${as_root[@]}" install -D -m 644 /dev/stdin "$no_cluster" <<< 'create_main_cluster = false'
fi
# A machine's package lists may be old, or gone: only then are they fetched again.
if ! "${as_root[@]}" apt-get install -qq -y --no-install-recommends "${missing[@]}" \
        < /dev/null > "$log" 2>&1; then
    "${as_root[@]}" apt-get update -qq < /dev/null >> "$log" 2>&1 || true
    "${as_root[@]}" apt-get install -qq -y --no-install-recommends "${missing[@]}" \
        < /dev/null >> "$log" 2>&1 || { tail -n 20 "$log" >&2; exit 3; }
fi
echo "Installed."
