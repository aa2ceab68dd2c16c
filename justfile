# Recipes for people. Each calls a script that `.ci/run` calls too; nothing is defined here.

# Lists the recipes.
default:
    @just --list

# Runs every step that a change must pass.
ci:
    .ci/run

# Formatting, as rustfmt.toml says.
format *arguments:
    .ci/steps/format {{arguments}}

# Clippy's and rustc's lints, for all targets and features.
lints *arguments:
    .ci/steps/lints {{arguments}}

# Words, sentence forms, line width and imports: docs/style.md. Arguments: paths; none means everything.
language *arguments:
    .ci/steps/language {{arguments}}

# Compiles all tests, which needs no control plane.
compile *arguments:
    .ci/steps/compile {{arguments}}

# Rustdoc without warnings.
documents *arguments:
    .ci/steps/documents {{arguments}}

# The primitives and the runtime name no field of a spec: they compile with the oldest API.
oldest-kubernetes *arguments:
    .ci/steps/oldest-kubernetes {{arguments}}

# Builds etcd and kube-apiserver once; prints the folder that holds them.
control-plane *arguments:
    .ci/steps/control-plane {{arguments}}

# All tests. Those that run against a real kube-apiserver may not have been skipped.
tests *arguments:
    .ci/steps/tests {{arguments}}

# The queue and the expectations on loom's locks; each model asserts how much it explored.
interleavings *arguments:
    .ci/steps/interleavings {{arguments}}

# Breaks each promise once. Arguments: names of mutants; none means all.
mutants *arguments:
    .ci/steps/mutants {{arguments}}

# Each example, to its end.
examples *arguments:
    .ci/steps/examples {{arguments}}

# The programs of docs/writing-a-controller.md, one after the other, on an embedded API server.
tutorial *arguments:
    .ci/steps/tutorial {{arguments}}

# The crate of examples/template: a copy is built and tested, then renamed as its README says, and tested again.
template *arguments:
    .ci/steps/template {{arguments}}

# Packs every published crate, in the order of docs/releasing.md. Compiles nothing.
package *arguments:
    .ci/steps/package {{arguments}}

# Compiles the published crates with the oldest versions of their direct dependencies.
minimal-versions *arguments:
    .ci/steps/minimal-versions {{arguments}}

# Compiles with the oldest Rust that Cargo.toml promises (rust-version).
msrv *arguments:
    .ci/steps/msrv {{arguments}}

# Licences, advisories, duplicates and sources of the dependencies: deny.toml.
deny *arguments:
    .ci/steps/deny {{arguments}}

# Public API against the last release of each published crate.
semver *arguments:
    .ci/steps/semver {{arguments}}

# Types of other crates in the public API: [package.metadata.cargo_check_external_types].
external-types *arguments:
    .ci/steps/external-types {{arguments}}

# Compares the table of built-in types (schema/table) with the Go types of the pinned Kubernetes version.
table *arguments:
    .ci/steps/table {{arguments}}

# Writes the table of built-in types for the pinned Kubernetes version.
generate:
    .ci/steps/table --write
