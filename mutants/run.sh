#!/usr/bin/env bash
# Applies each patch in turn, and expects the test that it names to fail: `mutants/run.sh [NAME…]`.
#
# A patch that does not apply, does not compile, or is not caught is an error. Two workers share the work, each in a
# copy under target/mutants. They use the dependencies that `cargo test --workspace` has compiled, if it ran before.
# The test of a mutant runs while its worker compiles the next one.
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
# A mutant breaks our code, so the embedded server catches it. A real one takes most of a test's time to start.
alone=(-u HOMEOSTAT_REQUIRE_CONTROL_PLANE -u KUBEBUILDER_ASSETS -u TEST_ASSET_ETCD -u TEST_ASSET_KUBE_APISERVER
    XDG_CACHE_HOME=/nonexistent)
patience=120 # seconds: a lost wake-up shows as a test that never ends; others may take long beside other work

prepare() { # WORKER: makes its folder, with a copy of the sources
    folder=$here/target/mutants/$1
    copy=$folder/copy
    rm -rf "$copy"
    mkdir -p "$copy"
    git ls-files -z --cached --others --exclude-standard |
        tar --create --null --files-from=- --ignore-failed-read | tar --extract --touch --directory="$copy"
    profiles "$copy" >>"$copy/.cargo/config.toml"
    borrow "${CARGO_TARGET_DIR:-target}/debug" "$folder/target/debug"
    borrow target/loom/debug "$folder/loom/debug"
}

profiles() { # COPY: prints the profiles of the crates that are mutated; dependencies keep that of the other steps
    local crate
    for crate in $(sed -n 's/^name = "\(homeostat.*\)"$/\1/p' "$1"/*/Cargo.toml "$1"/controllers/*/Cargo.toml | sort -u); do
        # One unit for each module. With fewer, rustc joins the smallest ones, others after each change of a size, and
        # compiles most of a crate again.
        printf '[profile.dev.package.%s]\ncodegen-units = 4096\n' "$crate"
        case $crate in # they take long to compile
        homeostat-apiserver | homeostat-quota | homeostat-schema) printf 'opt-level = 0\ndebug = false\n' ;;
        esac
    done
}

borrow() { # FROM TO: links to the dependencies that other steps have compiled
    [[ -d $1/.fingerprint && ! -d $2 ]] || return 0
    mkdir -p "$2"
    cp -al "$1/deps" "$1/build" "$2"
    cp -a "$1/.fingerprint" "$2" # Cargo writes these files again in place
}

build() { # LOOM? ARGUMENTS…: compiles the tests that are named; lists their programs in `programs`
    local loom=$1
    shift
    local arguments=("${@:1:$#-1}")
    (
        if [[ $loom == yes ]]; then
            export RUSTFLAGS="--cfg homeostat_loom" CARGO_TARGET_DIR=$folder/loom
            unset CARGO_RESOLVER_FEATURE_UNIFICATION # the features of .ci/steps/interleavings
            export CARGO_UNSTABLE_FEATURE_UNIFICATION=false
            arguments=(-p homeostat-workqueue -p homeostat-expectations --test loom)
        else
            export CARGO_TARGET_DIR=$folder/target
        fi
        # The programs are started without `cargo test`, which takes as long again to find that nothing has changed.
        cd "$copy" && cargo test --quiet "${arguments[@]}" --no-run --message-format=json-render-diagnostics
    ) >"$folder/messages" 2>"$folder/log" || return 1
    sed -n 's|.*"manifest_path":"\([^"]*\)/Cargo.toml".*"profile":{[^}]*"test":true}.*"executable":"\([^"]*\)".*|\1 \2|p' \
        "$folder/messages" >"$folder/programs"
}

needs_copy() { # FILE: succeeds if the test starts programs of its package, or may read the mutated file
    [[ $1 != *.rs ]] || grep -qF "$folder/target/debug/homeostat-" "$folder"/kept/[0-9]*
}

keep() { # links the programs under another name, since the next mutant replaces them
    local package program number=0
    rm -rf "$folder/kept"
    mkdir "$folder/kept"
    while read -r package program; do
        ln "$program" "$folder/kept/$number"
        echo "$package $folder/kept/$number"
        number=$((number + 1))
    done <"$folder/programs" >"$folder/kept/programs"
}

check() { # PATCH FILTER SECONDS: runs the programs that are kept; prints a row
    local patch=$1 filter=$2 took=$3 start=$SECONDS package program status=0 outcome
    while read -r package program; do
        (cd "$package" && timeout "$patience" env "${alone[@]}" "$program" "$filter") </dev/null >"$folder/kept/log" 2>&1 || status=$?
    done <"$folder/kept/programs"
    case $status in
    0) outcome="NOT CAUGHT" ;;
    124) outcome="caught (never ends)" ;;
    *) outcome="caught" ;;
    esac
    row "$patch" "$outcome" $((took + SECONDS - start)) "$filter" "$folder/kept/log"
}

row() { # PATCH OUTCOME SECONDS TEST LOG: prints a row, and the end of the log if it is a failure
    local name
    name=$(basename "$1" .patch)
    printf '%-46s %-20s %3d s  %s\n' "$name" "$2" "$3" "$4"
    if [[ $2 == caught* ]]; then
        echo "$name" >>"$claims/caught"
    else
        tail -40 "$5"
        echo "$name" >>"$claims/missed"
    fi
}

mutate() { # PATCH: compiles a mutant, and starts its test once that of the last one has ended
    local patch=$1 start=$SECONDS loom=no file
    local -a test
    read -r -a test <<<"$(sed -n '1s/^# caught by: //p' "$patch")"
    if [[ ${test[0]:-} == loom ]]; then
        loom=yes
        test=("${test[@]:1}")
    fi
    file=$(sed -n 's|^+++ b/||p' "$patch")
    # The ceiling: git would otherwise find the repository around the copy, and apply nothing.
    if ! (cd "$copy" && GIT_CEILING_DIRECTORIES=$copy/.. git apply "$here/$patch") 2>"$folder/log"; then
        row "$patch" "DOES NOT APPLY" 0 "${test[*]: -1}" "$folder/log"
        return
    fi
    if build "$loom" "${test[@]}"; then
        wait # for the test of the mutant before
        keep
        check "$patch" "${test[*]: -1}" $((SECONDS - start)) &
        ! needs_copy "$file" || wait
    else
        row "$patch" "DOES NOT COMPILE" $((SECONDS - start)) "${test[*]: -1}" "$folder/log"
    fi
    cp "$file" "$copy/$file"
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
    local step=$((1 - 2 * $1)) at
    prepare "$1"
    for ((at = $1 * (${#patches[@]} - 1); at >= 0 && at < ${#patches[@]}; at += step)); do
        mkdir "$claims/$at" 2>/dev/null || break
        mutate "${patches[at]}"
    done
    wait
}

for ((worker = 0; worker < workers; worker++)); do work "$worker" & done
wait
touch "$claims/caught"
caught=$(wc -l <"$claims/caught")
echo "$caught of ${#patches[@]} mutants are caught, $SECONDS s"
# Last, since a log is often cut at its beginning.
[[ ! -e $claims/missed ]] || echo "not caught: $(sort "$claims/missed" | paste -sd ' ')"
((caught == ${#patches[@]}))
