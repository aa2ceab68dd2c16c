#!/usr/bin/env bash
# Applies each patch in turn, and expects the test that it names to fail: `mutants/run.sh [NAME…]`.
#
# A patch that does not apply, does not compile, or is not caught is an error. Two workers share the work, each in a
# copy under target/mutants. They use the dependencies that `cargo test --workspace` has compiled, if it ran before.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

here=$PWD
workers=2 # a mutant compiles one or two crates, which keeps one core busy; `work` expects two
export CARGO_TERM_COLOR=never RUST_BACKTRACE=0
unset HOMEOSTAT_CASES HOMEOSTAT_OPERATIONS
# Every package is compiled with the features that the workspace needs together, as `cargo test --workspace` does.
# Else each one compiles variants of its own of tokio, k8s-openapi and others. The setting is unstable: Cargo accepts
# it from a development version only. (RUSTC_BOOTSTRAP=1 would do, too, but build scripts of dependencies look at it.)
export CARGO_RESOLVER_FEATURE_UNIFICATION=workspace CARGO_UNSTABLE_FEATURE_UNIFICATION=true
export __CARGO_TEST_CHANNEL_OVERRIDE_DO_NOT_USE_THIS=dev
export CARGO_INCREMENTAL=1 # the same crates are compiled again and again
patience=30 # seconds: a lost wake-up shows as a test that never ends

prepare() { # WORKER: makes its folder, with a copy of the sources
    folder=$here/target/mutants/$1
    copy=$folder/copy
    rm -rf "$copy"
    mkdir -p "$copy"
    git ls-files -z --cached --others --exclude-standard |
        tar --create --null --files-from=- --ignore-failed-read | tar --extract --touch --directory="$copy"
    # Crates that take long to compile are not optimized; dependencies keep the profile of the other steps.
    for crate in apiserver informer quota schema; do
        printf '[profile.dev.package.homeostat-%s]\nopt-level = 0\n' "$crate" >>"$copy/.cargo/config.toml"
    done
    borrow "${CARGO_TARGET_DIR:-target}/debug" "$folder/target/debug"
    borrow target/loom/debug "$folder/loom/debug"
}

borrow() { # FROM TO: links to the dependencies that other steps have compiled
    [[ -d $1/.fingerprint && ! -d $2 ]] || return 0
    mkdir -p "$2"
    cp -al "$1/deps" "$1/build" "$2"
    cp -a "$1/.fingerprint" "$2" # Cargo writes these files again in place
}

run() { # LOOM? ARGUMENTS…: compiles, then runs the tests that are named
    local loom=$1
    shift
    local arguments=("${@:1:$#-1}") filter=${!#}
    if [[ $loom == yes ]]; then
        export RUSTFLAGS="--cfg homeostat_loom" CARGO_TARGET_DIR=$folder/loom
        unset CARGO_RESOLVER_FEATURE_UNIFICATION # the features of .ci/steps/interleavings
        export CARGO_UNSTABLE_FEATURE_UNIFICATION=false
        arguments=(-p homeostat-workqueue -p homeostat-expectations --test loom)
    else
        export CARGO_TARGET_DIR=$folder/target
    fi
    compile "${arguments[@]}" >"$folder/programs" 2>"$folder/log" || return 100
    local package program status=0
    while read -r package program; do
        (cd "$package" && timeout "$patience" "$program" "$filter") </dev/null >"$folder/log" 2>&1 || status=$?
    done <"$folder/programs"
    return "$status"
}

compile() { # ARGUMENTS…: prints the folder of the package and the path of each test program
    # The programs are started without `cargo test`, which takes as long again to find that nothing has changed.
    cargo test --quiet "$@" --no-run --message-format=json-render-diagnostics |
        sed -n 's|.*"manifest_path":"\([^"]*\)/Cargo.toml".*"profile":{[^}]*"test":true}.*"executable":"\([^"]*\)".*|\1 \2|p'
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

# In the order of their crates and files: neighbours recompile the same crates.
in_order() { # PATCH…
    local patch
    for patch; do
        printf '%s\t%s\n' "$(sed -n 's|^+++ b/||p' "$patch")" "$patch"
    done | sort | cut -f 2
}
mapfile -t patches < <(in_order "${patches[@]}")

claims=$(mktemp -d)
trap 'rm -rf "$claims"' EXIT

work() { # WORKER: tries patches, from the first or from the last, until it meets the other worker
    local step=$((1 - 2 * $1)) failures=0 at
    prepare "$1"
    for ((at = $1 * (${#patches[@]} - 1); at >= 0 && at < ${#patches[@]}; at += step)); do
        mkdir "$claims/$at" 2>/dev/null || break
        mutate "${patches[at]}" && continue
        failures=$((failures + 1))
        tail -40 "$folder/log"
        basename "${patches[at]}" .patch >>"$claims/missed"
    done
    return $((failures > 0))
}

jobs=()
for ((worker = 0; worker < workers; worker++)); do
    work "$worker" &
    jobs+=($!)
done
missed=0
for job in "${jobs[@]}"; do wait "$job" || missed=1; done
echo "${#patches[@]} mutants, $( ((missed)) && echo "some not caught" || echo "all caught"), $SECONDS s"
# Last, since a log is often cut at its beginning.
[[ ! -e $claims/missed ]] || echo "not caught: $(sort "$claims/missed" | paste -sd ' ')"
((missed == 0))
