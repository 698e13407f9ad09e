#!/usr/bin/env bash
# The gate of a CI job: sweeps, compares to the last good run where there is one, and leaves what a
# job publishes.
#
#   gate.sh PROGRAM OUT BASE [sweep flags...]
#
# BASE is only read: whoever calls this keeps OUT/run.jsonl as the next BASE/run.jsonl, or has
# store.sh do it. Where PROGRAM is kept as BASE/bench-lstm too, the next gate lets both programs measure each case
# in turns (--against), which finds changes of 3 % and takes as long as two sweeps. Else it compares to the kept run. It leaves OUT/run.jsonl and pictures, OUT/junit.xml and OUT/run.md, OUT/verdict.md with the verdict as a heading, and
# OUT/compare.{txt,md,xml,json} where BASE holds a run. The Markdown is also appended to the job's
# summary on GitHub; store.sh makes a comment of it. Compared to
# a kept run, a slower case counts only when a second sweep (OUT/again) confirms it, because the machine itself may
# have been slow during the first.
# When the base was measured on another machine, its times do not fail the job: a sentence says so, and
# only cases that failed count.
# Exit codes are the program's: 3 is a regression, 1 a case that fails, as it did before.
# Settings: LB_PROCESSES (15) fresh processes per case, LB_CASE_TIME (0.1) seconds of sampling in each,
# LB_MARGIN (5) percent that matters: what --self-test says two runs resolve on this machine;
# LB_ACCEPT=1 reports and passes whatever the comparison says, so that this run is the next base.
set -euo pipefail

if [[ $# -lt 3 ]]; then
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
program=$1 out=$2 base=$3
shift 3
summary=${GITHUB_STEP_SUMMARY:-/dev/null}
status=0 failed=0 second= old=$base new=$out

# sweep FOLDER [flags...]: 1 is a case that failed, and 3 to 5 come from programs in turns: both are for the
# comparison to judge. Any other failure ends the job.
sweep() {
    code=0
    "$program" --sweep --out "$@" --processes "${LB_PROCESSES:-15}" \
        --case-time "${LB_CASE_TIME:-0.1}" || code=$?
    [[ $code -le 1 || $code =~ ^[345]$ ]] || exit "$code"
    [[ $code -ne 1 ]] || failed=1
}

# compare FORMAT
compare() {
    "$program" --compare "$old" "$new" ${second:+--confirm "$second"} --margin "${LB_MARGIN:-5}" \
        --format "$1"
}

# say SENTENCE: prints it, and appends it as a heading to the summary and to the verdict.
say() {
    echo "$1"
    printf '### %s\n\n' "$1" | tee -a "$out/verdict.md" >> "$summary"
}

accepted() {
    [[ ${LB_ACCEPT:-0} == 1 ]]
}

# What of the machine, if anything, differs from the base's. Another host of the same kind does not.
other_machine() {
    sed -n 's/^ *"environments_differ_in": "\(.*\)",$/\1/p' "$out/compare.json" | tr -d ' ' |
        tr ',' '\n' | grep -xE 'cpu|threads|simd|governor|gpu' | paste -sd, || true
}

# Programs take turns when each can use the other's workers.
protocol() {
    "$1" --version | grep '^worker protocol '
}

if [[ -x $base/bench-lstm && $(protocol "$base/bench-lstm") == "$(protocol "$program")" ]]; then
    sweep "$out/turns" "$@" --against "$base/bench-lstm"
    old=$out/turns/base new=$out/turns/new
    cp "$new/run.jsonl" "$out"
else
    sweep "$out" "$@"
fi
"$program" --export junit,markdown "$out"
: > "$out/verdict.md"
if [[ $code -eq 5 && $new == "$out" ]]; then
    say "No case ran: this run is no baseline."
    rm "$out/run.jsonl"
    exit 5
fi
if [[ ! -f $old/run.jsonl ]]; then
    say "No earlier run in $base: nothing to compare to, this one is the baseline."
    cat "$out/run.md" >> "$summary"
    exit "$failed"
fi

compare json > "$out/compare.json" 2> "$out/compare.txt" || status=$?
if [[ $status -eq 2 ]]; then
    cat "$out/compare.txt"
    if grep -q 'this run has schema version' "$out/compare.txt"; then
        say "The base in $base has another schema version: this run is the next base."
        exit "$failed"
    fi
    say "The base in $base can't be read. LB_ACCEPT=1 makes this run the next one."
    accepted || exit 2
    exit "$failed"
fi
machine=$(other_machine)
if [[ $status -eq 3 && -z $machine && $new == "$out" ]]; then
    echo "A second sweep, to see whether it stays:"
    second=$out/again
    sweep "$second" "$@"
fi
status=0
compare table > "$out/compare.txt" || status=$?
cat "$out/compare.txt"
for format in markdown:md junit:xml json:json; do
    compare "${format%:*}" > "$out/compare.${format#*:}" 2> /dev/null || true
done

if [[ -n $machine && $status -ne 0 ]]; then
    say "The base was measured on another machine ($machine): its times stop nothing."
    status=0
elif [[ $status -ne 0 ]] && accepted; then
    say "Accepted as it is: this run is the next base."
    status=0
fi
cat "$out/compare.md" >> "$summary"
[[ $status -ne 0 ]] || status=$failed
exit "$status"
