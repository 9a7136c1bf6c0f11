#!/usr/bin/env bash
# tidy.sh BUILD [FILE...]: clang-tidy 14 over the library and the command line as BUILD (configured with clang) compiles them, or
# over the files given. Fails on the first class of finding; .clang-tidy says what is looked for.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$1
shift
files=("$@")
[ ${#files[@]} -gt 0 ] || mapfile -t files < <(find src -name '*.c' | sort)
printf '%s\0' "${files[@]}" | xargs -0 -P "$(nproc)" -n 4 clang-tidy-14 -p "$build" --quiet 2> /dev/null
