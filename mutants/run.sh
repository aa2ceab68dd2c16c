#!/usr/bin/env bash
# Breaks each promise once, and expects the test that the patch names to fail: `mutants/run.sh [NAME…]`.
#
# A patch that does not apply, does not compile, or is not caught is an error. The work is done in a copy
# under target/mutants; the first run compiles the dependencies there.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

here=$PWD
copy=$here/target/mutants/copy
export CARGO_TERM_COLOR=never RUST_BACKTRACE=0
unset HOMEOSTAT_CASES HOMEOSTAT_OPERATIONS
patience=30 # seconds: a lost wake-up is a test that never ends

rm -rf "$copy"
mkdir -p "$copy"
git ls-files -z --cached --others --exclude-standard |
    tar --create --null --files-from=- --ignore-failed-read | tar --extract --touch --directory="$copy"

run() { # LOOM? ARGUMENTS…: compiles, then runs the tests that are named
    local loom=$1
    shift
    local arguments=("${@:1:$#-1}") filter=${!#}
    if [[ $loom == yes ]]; then
        export RUSTFLAGS="--cfg homeostat_loom" CARGO_TARGET_DIR=$here/target/mutants/loom # cargo cannot tell the copy from here
    else
        export CARGO_TARGET_DIR=$here/target/mutants/target
        export CARGO_PROFILE_DEV_OPT_LEVEL=0 CARGO_PROFILE_TEST_OPT_LEVEL=0
        export CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_TEST_DEBUG=0
    fi
    cargo test --quiet "${arguments[@]}" --no-run >"$copy/../log" 2>&1 || return 100
    timeout "$patience" cargo test --quiet "${arguments[@]}" "$filter" >"$copy/../log" 2>&1
}

mutate() { # PATCH: prints a row; fails if it is not caught
    local patch=$1 name start=$SECONDS loom=no status outcome
    name=$(basename "$patch" .patch)
    local -a test
    read -r -a test <<<"$(sed -n '1s/^# caught by: //p' "$patch")"
    if [[ ${test[0]:-} == loom ]]; then
        loom=yes
        test=("${test[@]:1}")
    fi
    local file
    file=$(sed -n 's|^+++ b/||p' "$patch")
    # The ceiling: git would otherwise find the repository around the copy, and apply nothing.
    if ! (cd "$copy" && GIT_CEILING_DIRECTORIES=$copy/.. git apply "$here/$patch"); then
        outcome="DOES NOT APPLY"
    else
        (cd "$copy" && run "$loom" "${test[@]}")
        status=$?
        case $status in
        0) outcome="NOT CAUGHT" ;;
        100) outcome="DOES NOT COMPILE" ;;
        124) outcome="caught (never ends)" ;;
        *) outcome="caught" ;;
        esac
    fi
    cp "$file" "$copy/$file"
    printf '%-46s %-20s %3d s  %s\n' "$name" "$outcome" $((SECONDS - start)) "${test[*]: -1}"
    [[ $outcome == caught* ]]
}

patches=()
for name in "$@"; do patches+=("mutants/$name.patch"); done
((${#patches[@]})) || patches=(mutants/*.patch)

failures=0
for patch in "${patches[@]}"; do
    mutate "$patch" || { failures=$((failures + 1)); cat "$copy/../log"; }
done
echo "${#patches[@]} mutants, $failures not caught, $SECONDS s"
((failures == 0))
