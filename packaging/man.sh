#!/bin/sh
# man.sh PROGRAM VERSION: the manual page on standard output, from the program's own help texts, so that it cannot go stale.
set -eu
program=$1 version=$2

# Text to roff: backslashes and leading dots or quotes lose their meaning, minus signs stay minus signs.
escape() { sed -e 's/\\/\\e/g' -e 's/-/\\-/g' -e "s/^\([.']\)/\\\\\&\1/"; }
verbatim() { printf '.nf\n'; escape; printf '.fi\n'; }

printf '.TH INKSTONE 1 "" "inkstone %s" "User Commands"\n' "$version"
printf '.SH NAME\ninkstone \\- read documents with PaddleOCR\\-VL in native BF16\n'
printf '.SH SYNOPSIS\n.B inkstone\n.I COMMAND\n[\\fIOPTION\\fR...]\n'
printf '.SH DESCRIPTION\n'
"$program" --help | verbatim
for command in $("$program" --help | sed -n 's/^  \([a-z][a-z]*\)  *[a-z].*/\1/p' | grep -v '^inkstone$'); do
  printf '.SH "INKSTONE %s"\n' "$(echo "$command" | tr '[:lower:]' '[:upper:]')"
  "$program" "$command" --help | verbatim
done
