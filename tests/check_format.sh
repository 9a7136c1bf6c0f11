#!/usr/bin/env bash
# check_format.sh SOURCE CLANG_FORMAT: every C file is laid out as .clang-format says (clang-format 14).
set -euo pipefail
cd "$1"
"$2" --version | grep -qE 'version 14\.' || { echo "needs clang-format 14"; exit 1; }
find bench examples fuzz include src tests -name '*.[ch]' -print0 2>/dev/null | xargs -0 "$2" --dry-run -Werror
echo "formatted"
