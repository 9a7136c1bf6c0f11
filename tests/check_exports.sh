#!/usr/bin/env bash
# check_exports.sh SOURCE SHARED STATIC: both libraries define exactly the functions that the headers mark INK_API, and nothing
# else that another program's linker could see.
set -euo pipefail
source=$1 shared=$2 static=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

grep -hoE 'INK_API .*' "$source"/include/inkstone/*.h | grep -v '^INK_API __attribute__' | grep -oE 'ink_[a-z0-9_]+\(' | tr -d '(' | sort -u > "$work/declared"
nm -D --defined-only "$shared" | awk '{print $NF}' | sed 's/@.*//' | sort -u > "$work/shared"
nm -g --defined-only "$static" | awk 'NF == 3 {print $3}' | sort -u > "$work/static"
[ -s "$work/declared" ] || { echo "no INK_API function found in the headers"; exit 1; }
status=0
for kind in shared static; do
  # The sanitizers and gcov define symbols of their own.
  grep -vE '^(__(a|ub|l)san|__odr_asan|__gcov|mangle_path$|__sanitizer)' "$work/$kind" > "$work/$kind.own" || true
  if ! diff "$work/declared" "$work/$kind.own" > "$work/difference"; then
    echo "$kind library against the headers (< only declared, > only defined):"
    cat "$work/difference"
    status=1
  fi
done
soname=$(objdump -p "$shared" | awk '$1 == "SONAME" {print $2}')
[ "$soname" = libinkstone.so.0 ] || { echo "SONAME is '$soname', expected libinkstone.so.0"; status=1; }
[ $status = 0 ] && echo "$(wc -l < "$work/declared") functions exported by both"
exit $status
