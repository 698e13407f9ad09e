#!/usr/bin/env bash
# Keeps the runs of main in a branch of the repository, so that a team needs no other store: each run
# of main is kept, the last one is the baseline of pull requests, and the branch's README is the page
# of the history, which every forge shows.
#
#   store.sh fetch FOLDER              the last run of main on this kind of machine, into
#                                      FOLDER/run.jsonl; an empty FOLDER when there is none
#   store.sh publish PROGRAM RUN       adds RUN/run.jsonl to the branch, draws the history, pushes
#   store.sh comment OUT [FILE]        writes the comment of a pull request from what gate.sh left in
#                                      OUT; prints it without FILE
#
# Settings: LB_STORE_BRANCH (bench-lstm-results), LB_STORE_REMOTE (origin), LB_MACHINE: runs are
# compared within one kind of machine, which is named by its CPU and its count unless this is set.
set -euo pipefail

branch=${LB_STORE_BRANCH:-bench-lstm-results}
remote=${LB_STORE_REMOTE:-origin}

machine() {
    local cpu
    cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1 | tr -cs 'A-Za-z0-9\n' '-')
    echo "${LB_MACHINE:-${cpu:-$(uname -m)}-$(nproc)}"
}

# has_branch: whether the remote has the branch; fetches it.
has_branch() {
    git ls-remote --exit-code --heads "$remote" "$branch" > /dev/null 2>&1 || return 1
    git fetch --quiet "$remote" "+refs/heads/$branch:refs/remotes/$remote/$branch"
}

fetch() {
    local folder=$1 last=
    mkdir -p "$folder"
    has_branch || return 0
    # Folders are named by the time of the run, so the last name is the last run.
    last=$(git ls-tree -d --name-only "$remote/$branch" "runs/$(machine)/" |
        grep -E '/[0-9][^/]*$' | sort | tail -n 1) || true
    [[ -z $last ]] || git show "$remote/$branch:$last/run.jsonl" > "$folder/run.jsonl"
}

# write_page PROGRAM TREE: draws the history of this kind of machine and names it in the README.
write_page() {
    local folder page
    folder=runs/$(machine)
    (cd "$2" && "$1" --history "$folder" > "$folder/history.txt" 2>&1) || true
    {
        echo "# History of bench-lstm's runs on main"
        for page in "$2"/runs/*; do
            page=${page##*/}
            printf '\n## %s\n\n' "$page"
            [[ ! -f $2/runs/$page/plots/history.svg ]] ||
                printf '![Median time by run](runs/%s/plots/history.svg)\n\n' "$page"
            # shellcheck disable=SC2016 # a fence of Markdown
            printf '```\n%s\n```\n' "$(cat "$2/runs/$page/history.txt")"
        done
    } > "$2/README.md"
}

# commit_run PROGRAM RUN TREE: one attempt to add the run to the branch as it is at the remote.
commit_run() {
    local started commit target
    rm -rf "$3"
    git worktree prune
    git branch -D --quiet "$branch-new" 2> /dev/null || true # of an attempt that failed
    if has_branch; then
        git worktree add --quiet --detach "$3" "$remote/$branch"
    else
        git worktree add --quiet --detach "$3"
        git -C "$3" checkout --quiet --orphan "$branch-new"
        git -C "$3" rm -rq --force --ignore-unmatch .
    fi
    commit=$(git rev-parse --short=12 HEAD)
    started=$(sed -n '1s/.*"started":"\([^"]*\)".*/\1/p' "$2/run.jsonl" | tr ':' '-')
    target=runs/$(machine)/$started-$commit
    mkdir -p "$3/$target"
    cp "$2/run.jsonl" "$3/$target/"
    write_page "$1" "$3"
    git -C "$3" add --all
    git -C "$3" -c user.name=bench-lstm -c user.email=bench-lstm@localhost \
        commit --quiet -m "Run of $commit on $(machine)"
    git -C "$3" push --quiet "$remote" "HEAD:refs/heads/$branch"
}

publish() {
    local program tree attempt status=1
    program=$(realpath "$1")
    tree=$(mktemp -d)/store
    # Another job may push in between: its run is then fetched first. An attempt is a program of its
    # own, because in a condition set -e does not end a function at the first command that fails.
    for attempt in 1 2 3; do
        bash "$0" attempt "$program" "$2" "$tree" && status=0 && break
        echo "store.sh: attempt $attempt to push to $branch failed" >&2
    done
    git worktree remove --force "$tree"
    git branch -D --quiet "$branch-new" 2> /dev/null || true
    return "$status"
}

# The first line lets a job find its earlier comment, to replace it.
comment() {
    local out=$1 file=${2:-/dev/stdout}
    {
        echo '<!-- bench-lstm -->'
        cat "$out/verdict.md"
        [[ ! -s $out/compare.md ]] || cat "$out/compare.md"
    } > "$file"
}

case ${1-} in
fetch) fetch "$2" ;;
publish) publish "$2" "$3" ;;
attempt) commit_run "$2" "$3" "$4" ;;
comment) comment "$2" "${3-}" ;;
*)
    sed -n '6,11p' "$0" | sed 's/^# *//' >&2
    exit 2
    ;;
esac
