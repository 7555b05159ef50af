#!/bin/bash
# usage: run.sh [--once]
#
# Build, start Hooktrail with a state of its own, play a session, show what came of it.
# Stays in the foreground until Ctrl-C; with --once it ends by itself. A second run, also
# beside the first, adds a session. State, configuration and log are in build, or in
# $SAMPLE_FOLDER.
#
# Exit codes: 0 ended, also by Ctrl-C; 2 an unknown option; 3 it does not start, or was
# stopped while the session was played.
set -euo pipefail
cd "$(dirname "$0")/../.."

once=
case "$*" in
"") ;;
--once) once=1 ;;
-h | --help)
    sed -n '2,/^set/s/^# \{0,1\}//p' deploy/sample/run.sh
    exit 0
    ;;
*)
    echo "run.sh: unknown option '$*'; see run.sh --help" >&2
    exit 2
    ;;
esac
folder=${SAMPLE_FOLDER:-$PWD/build}
state=$folder/sample-state
config=$folder/sample.yaml
log=$folder/sample.log
hooktrail="build/hooktrail --config $config"
session=deploy/sample/session.ndjson
pid=

bold='' plain=''
if [ -t 2 ] && [ -z "${NO_COLOR:-}" ]; then
    bold=$'\033[1m' plain=$'\033[0m'
fi
say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain" >&2; }

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

# End what this run started, in order; a Ctrl-C meanwhile is passed on as the second signal.
stop() {
    trap '' EXIT
    [ -n "$pid" ] || return 0
    trap 'kill -TERM "$pid" 2>/dev/null' INT TERM HUP
    kill -TERM "$pid" 2>/dev/null || true
    while kill -0 "$pid" 2>/dev/null; do
        wait "$pid" || true
    done
}
interrupted() {
    trap '' INT TERM HUP
    say "Ending: what was accepted is stored first"
    stop
    exit 0
}
trap stop EXIT
trap interrupted INT TERM HUP

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
    say "Starting hooktrail run (log: $log)"
    # In a session of its own: Ctrl-C is for this script, which ends it once.
    setsid $hooktrail run >"$log" 2>&1 &
    pid=$!
    wait_for 100 is_listening || {
        cat "$log" >&2
        exit 3
    }
fi

say "Playing an incident: each line is one event, and what its hooks decided"
thread=$(python3 deploy/sample/play.py "$state/collect.sock" $session) || {
    say "The session was not played to its end"
    exit 3
}
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
