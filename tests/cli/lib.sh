# lib.sh - what the shell tests of the command line share. A test is run as: bash NAME.sh PROGRAM SOURCE_DIR
# Each prints what failed and exits 1 at its end.
ink=$1
src=$2
golden=$src/models/mini/golden
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
export OMP_WAIT_POLICY=passive LC_ALL=C.UTF-8
failures=0

fail() {
    failures=$((failures + 1))
    printf 'FAILED: %s\n' "$*"
}

# run NAME COMMAND...: runs it, stdout in $work/out, stderr in $work/err, exit code in $rc.
run() {
    name=$1
    shift
    "$@" >"$work/out" 2>"$work/err"
    rc=$?
}

code() { [ "$rc" = "$1" ] || fail "$name: exit code $rc, expected $1: $(head -c 300 "$work/err")"; }

# The whole of stdout, byte for byte.
out_is() {
    printf '%s' "$1" >"$work/want"
    cmp -s "$work/out" "$work/want" || fail "$name: stdout is '$(head -c 400 "$work/out")', expected '$1'"
}
out_has() { grep -qF -- "$1" "$work/out" || fail "$name: no '$1' in stdout: $(head -c 400 "$work/out")"; }
err_is() {
    printf '%s\n' "$1" >"$work/want"
    cmp -s "$work/err" "$work/want" || fail "$name: stderr is '$(head -c 400 "$work/err")', expected '$1'"
}
err_has() { grep -qF -- "$1" "$work/err" || fail "$name: no '$1' in stderr: $(head -c 400 "$work/err")"; }
err_empty() { [ -s "$work/err" ] && fail "$name: stderr: $(head -c 300 "$work/err")"; }

finish() {
    [ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }
    echo ok
    exit 0
}

text01='https://dogagen.examp'
text05=$'shell opti\nof the various\nvioletter'
