#!/usr/bin/env bash
# check_tree.sh SOURCE: rules of the tree that no compiler checks. Prints every offence.
#   - a C file, header or script has at most 1200 lines (said, but no failure, above 800)
#   - no notes of unfinished work, no paths of the machine something was written on
#   - every registry list is declared, and every op with kernels has a conformance case
#   - a kernel file that includes intrinsics is named for its instruction set
set -euo pipefail
cd "$1"
status=0
offence() { echo "$*"; status=1; }

mapfile -t files < <(if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then git ls-files; else find . -type f -not -path './build/*' -not -path './.git/*' | sed 's|^\./||'; fi)

for file in "${files[@]}"; do
  case $file in
  *.c | *.h | *.sh | *.py | *.cmake | bootstrap) [ -f "$file" ] || continue ;;
  *) continue ;;
  esac
  lines=$(wc -l < "$file")
  if [ "$lines" -gt 1200 ]; then
    offence "$file: $lines lines, at most 1200"
  elif [ "$lines" -gt 800 ]; then
    echo "note: $file: $lines lines, better at most 800"
  fi
done

words='(TO''DO|FIX''ME|X''XX)\b|/wo''rk/'
while IFS= read -r line; do offence "unfinished or private: $line"; done < <(
  printf '%s\0' "${files[@]}" | grep -zvE '\.(png|jpg|webp|tiff|safetensors|json)$|^(fuzz/seeds|tests/data|models)/' | xargs -0 grep -nIE "\\b($words)" -- 2>/dev/null || true)

# LIST(cpu, op) in lists.inc <-> kernels_cpu_op; op <-> CONF(op).
while read -r op; do
  grep -qE "^CONF\($op\)" src/conformance/ops.inc || offence "src/registry/lists.inc: $op has kernels but no conformance case"
  grep -qE "^OP\($op\)" src/ops/ops.inc || offence "src/registry/lists.inc: $op is no operator"
done < <(sed -nE 's/^LIST\([a-z]+, *([a-z0-9_]+)\).*/\1/p' src/registry/lists.inc)
for file in src/cpu/*.c; do
  while read -r op; do
    grep -qE "^LIST\(cpu, *$op\)" src/registry/lists.inc || offence "$file: kernels_cpu_$op is not in src/registry/lists.inc"
  done < <(grep -oE 'kernel_list kernels_cpu_[a-z0-9_]+' "$file" | sed 's/.*kernels_cpu_//')
done
while read -r op; do
  grep -qE "^LIST\([a-z]+, *$op\)" src/registry/lists.inc || offence "src/conformance/ops.inc: $op has a case but no kernels"
done < <(sed -nE 's/^CONF\(([a-z0-9_]+)\).*/\1/p' src/conformance/ops.inc)

while IFS= read -r file; do
  case $file in
  *.h | *_avx2.c | *_avx512.c | *_amx.c) ;;
  *) offence "$file: intrinsics in a file that is not named for its instruction set" ;;
  esac
done < <(grep -lE 'immintrin\.h|cpu/vec\.h' $(printf '%s\n' "${files[@]}" | grep -E '^src/.*\.[ch]$'))

[ $status = 0 ] && echo "${#files[@]} files"
exit $status
