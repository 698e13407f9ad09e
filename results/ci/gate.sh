#!/usr/bin/env bash
# The gate of a CI job: sweeps, compares to the last good run where there is one, and leaves what a
# job publishes.
#
#   gate.sh PROGRAM OUT BASE [sweep flags...]
#
# OUT/run.jsonl and pictures; OUT/compare.{md,xml,json} where BASE holds a run. The Markdown is also
# appended to the job's summary on GitHub. What is slower must be so in a second sweep too, since
# the machine may have been what was slow during the first. Exit codes are the program's: 3 is a
# regression.
# Settings: LB_PROCESSES (15) fresh processes a case, LB_CASE_TIME (0.1) seconds of sampling in each,
# LB_MARGIN (5) percent that matters: what --self-test says two runs resolve on this machine.
set -euo pipefail

program=$1 out=$2 base=$3
shift 3
summary=${GITHUB_STEP_SUMMARY:-/dev/null}

sweep() {
    "$program" --sweep "$@" --processes "${LB_PROCESSES:-15}" --case-time "${LB_CASE_TIME:-0.1}"
}

# compare RUN FORMAT
compare() {
    "$program" --compare "$base" "$1" --margin "${LB_MARGIN:-5}" --format "$2"
}

# The cases that a table on stdin calls slower or broken.
named() {
    awk '/^(slower|broken) / { for (i = 2; i <= NF; i++) if ($i ~ /T[0-9]+_B[0-9]+/) print $i }' | sort
}

sweep "$@" --out "$out"
if [[ ! -f $base/run.jsonl ]]; then
    echo "No earlier run in $base: nothing to compare to, this one is the baseline."
    cat "$out/run.md" >> "$summary"
    exit 0
fi

status=0
compare "$out" table | tee "$out/compare.txt" || status=$?
for format in markdown:md junit:xml json:json; do
    compare "$out" "${format%:*}" > "$out/compare.${format#*:}" 2> /dev/null || true
done
cat "$out/compare.md" >> "$summary"

if [[ $status -eq 3 ]]; then
    echo "A second sweep, to see whether it stays:"
    sweep "$@" --out "$out/again"
    compare "$out/again" table | tee "$out/again/compare.txt" || true
    confirmed=$(comm -12 <(named < "$out/compare.txt") <(named < "$out/again/compare.txt"))
    if [[ -z $confirmed ]]; then
        status=0
        echo "Not confirmed: no case is slower in both sweeps." | tee -a "$summary"
    else
        printf 'Confirmed by a second sweep:\n%s\n' "$confirmed" | tee -a "$summary"
    fi
fi
exit "$status"
