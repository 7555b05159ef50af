#!/bin/sh
# Run one fuzzer for some seconds: run.sh build/fuzz/fuzz_NAME SECONDS
# Its seeds are in tests/fuzz/corpus/fuzz_NAME. What it grows goes to build/fuzz/corpus/fuzz_NAME,
# and an input that it fails on stays beside the program.
set -eu
name=$(basename "$1")
seeds="tests/fuzz/corpus/$name"
grown="build/fuzz/corpus/$name"
log="build/fuzz/$name.log"
mkdir -p "$grown"
[ -d "$seeds" ] || seeds=
if "$1" -max_total_time="$2" -timeout=10 -rss_limit_mb=2048 -max_len=65536 \
    -artifact_prefix="build/fuzz/$name-" -print_final_stats=1 "$grown" $seeds >"$log" 2>&1; then
    echo "$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs, none failed"
else
    echo "$name FAILED; see $log"
    tail -40 "$log"
    exit 1
fi
