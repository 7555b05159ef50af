#!/bin/bash
# Build, start Hooktrail with a state of its own, play a session, show what came of it.
# Stays in the foreground until Ctrl-C; with --once it ends by itself. A second run, also
# beside the first, adds a session.
set -euo pipefail
cd "$(dirname "$0")/../.."

once=
[ "${1:-}" = "--once" ] && once=1
state=$PWD/build/sample-state
config=$PWD/build/sample.yaml
hooktrail="build/hooktrail --config $config"
session=deploy/sample/session.ndjson
pid=

say() { printf '\n\033[1m%s\033[0m\n' "$*" >&2; }

# Up to $1 tenths of a second for the command behind it to succeed.
wait_for() {
    local tenths=$1
    shift
    until "$@" >/dev/null 2>&1; do
        tenths=$((tenths - 1))
        [ "$tenths" -gt 0 ] || return 1
        sleep 0.1
    done
}

is_listening() {
    python3 - "$state/collect.sock" <<'PY'
import socket, sys
socket.socket(socket.AF_UNIX).connect(sys.argv[1])
PY
}

is_shipped() {
    $hooktrail trace "$1" --json | python3 -c 'import json, sys
trace = json.load(sys.stdin)
calls = {e["dispatch_id"] for e in trace["events"] if e["kind"] == "evaluation"}
sys.exit(len(calls) < int(sys.argv[1]))' "$(grep -c . $session)"
}

stop() {
    [ -n "$pid" ] || return 0
    kill -TERM "$pid" 2>/dev/null || true
    wait "$pid" || true
    pid=
}

[ -x deploy/deps.sh ] && deploy/deps.sh
say "Building"
make -j"$(nproc)"
mkdir -p "$state"
cat >"$config" <<YAML
state: $state
contracts:
  sre: {hooks: $PWD/deploy/sample/hooks.yaml}
serve: {listen: ["unix:$state/serve.sock"]}
YAML

if is_listening 2>/dev/null; then
    say "Hooktrail runs already with this state: adding a session to it"
else
    say "Starting hooktrail run (log: build/sample.log)"
    $hooktrail run >build/sample.log 2>&1 &
    pid=$!
    trap stop EXIT
    trap 'exit 130' INT TERM
    wait_for 100 is_listening || {
        cat build/sample.log >&2
        exit 3
    }
fi

say "Playing an incident: each line is one event, and what its hooks decided"
thread=$(python3 deploy/sample/play.py "$state/collect.sock" $session)
wait_for 200 is_shipped "$thread" || say "Not everything is shipped yet; the trace says how much"

say "hooktrail trace $thread"
$hooktrail trace "$thread"
say "hooktrail why review-terminal --thread $thread --tool RunInTerminal"
$hooktrail why review-terminal --thread "$thread" --tool RunInTerminal

say "Look further:"
cat >&2 <<TEXT
  $hooktrail trace $thread --all
  $hooktrail why change-freeze --thread $thread --tool CreateFile
  $hooktrail why lookup-owner --thread $thread
  $hooktrail status
  $hooktrail verify
  curl --unix-socket $state/serve.sock http://localhost/v1/threads/$thread/trace
TEXT

if [ -n "$pid" ] && [ -z "$once" ]; then
    say "Hooktrail goes on; Ctrl-C ends it"
    wait "$pid"
fi
