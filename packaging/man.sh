#!/bin/sh
# man.sh PROGRAM VERSION: the manual page on standard output: docs/man/inkstone.1.in, and for every command the program's own
# help text, so that it cannot go stale.
set -eu
program=$1 version=$2
page=$(dirname "$0")/../docs/man/inkstone.1.in

# Text to roff: backslashes and leading dots or quotes lose their meaning, minus signs stay minus signs.
verbatim() {
  printf '.nf\n'
  sed -e 's/\\/\\e/g' -e 's/-/\\-/g' -e "s/^\([.']\)/\\\\\&\1/"
  printf '.fi\n'
}

sed -e '/^@COMMANDS@$/,$d' -e "s/@VERSION@/$version/" "$page"
for command in $("$program" --help | sed -n 's/^  \([a-z][a-z]*\)  *[a-z].*/\1/p' | grep -v '^inkstone$'); do
  printf '.SS inkstone %s\n' "$command"
  "$program" "$command" --help | verbatim
done
sed -e '1,/^@COMMANDS@$/d' "$page"
