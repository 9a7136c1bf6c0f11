# output.sh - where text goes: terminals, files, full disks, closed pipes, signals.
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
cp "$golden/01.png" a.png
cp "$golden/05.png" b.png

# ---- a file appears complete or not at all ----
run "-o" "$ink" read -o out.txt b.png a.png
code 0; out_is ""; err_empty
[ "$(cat out.txt)" = "$text05"$'\n'"$text01" ] || fail "-o: $(cat out.txt)"

run "one bad input, the others are written" "$ink" read -o out.txt none.png a.png
code 1; [ "$(cat out.txt)" = "$text01" ] || fail "-o with a bad input: $(cat out.txt)"

echo before >keep.txt
run "only bad inputs" "$ink" read -o keep.txt none.png
code 1; [ "$(cat keep.txt)" = before ] || fail "an existing file was touched by a failure"
run "bad model" "$ink" read -o keep.txt --model none a.png
code 1; [ "$(cat keep.txt)" = before ] || fail "an existing file was touched by a bad model"
run "only bad inputs, new file" "$ink" read -o new.txt none.png
code 1; [ -e new.txt ] && fail "a failure left a file"
run "only bad inputs, JSON" "$ink" read --json -o errors.json none.png
code 1; grep -q '"error":{"code":"not_found"' errors.json || fail "errors are JSON results too"

run "-o -" "$ink" read -o - a.png
code 0; out_is "$text01"$'\n'

mkdir sub
run "no such folder" "$ink" read -o none/out.txt a.png
code 1; err_has "none/out.txt: cannot create: No such file or directory"
run "a folder" "$ink" read -o sub a.png
code 1; err_has "sub: cannot write: Is a directory"
chmod 500 sub
if ! [ -w sub ]; then # not for root
    run "unwritable folder" "$ink" read -o sub/out.txt a.png
    code 1; err_has "sub/out.txt: cannot create: Permission denied"
fi
echo mine >closed.txt
chmod 400 closed.txt
if ! [ -w closed.txt ]; then
    run "unwritable file" "$ink" read -o closed.txt a.png
    code 1; [ "$(cat closed.txt)" = mine ] || fail "an unwritable file was replaced"
fi
run "an input as output" "$ink" read -o a.png b.png a.png
code 2; err_has "'a.png' is one of the images"
cmp -s a.png "$golden/01.png" || fail "the input was overwritten"

echo x >target.txt
chmod 640 target.txt
ln -s target.txt link.txt
run "a symbolic link" "$ink" read -o link.txt a.png
code 0; { [ -L link.txt ] && [ "$(cat target.txt)" = "$text01" ] && [ "$(stat -c %a target.txt)" = 640 ]; } || fail "-o through a link: $(ls -l)"
(umask 027 && "$ink" read -o masked.txt a.png) || fail "umask"
[ "$(stat -c %a masked.txt)" = 640 ] || fail "umask: $(stat -c %a masked.txt)"
run "-o /dev/null" "$ink" read -o /dev/null a.png
code 0; [ -c /dev/null ] || fail "/dev/null was replaced"
run "-o /dev/full" "$ink" read -o /dev/full a.png
code 1; err_has "No space left on device"
mkfifo pipe
cat pipe >piped.txt &
run "-o a named pipe" "$ink" read -o pipe a.png
code 0; wait $!
[ "$(cat piped.txt)" = "$text01" ] || fail "named pipe: $(cat piped.txt)"
[ -z "$(find . -name '*.txt.*')" ] || fail "temporary files are left: $(ls)"

# ---- standard output that cannot be written ----
for arguments in "read a.png" "read --json a.png" "--version" "--help" "read --help" "kernels" "devices" "check"; do
    # shellcheck disable=SC2086
    "$ink" $arguments >/dev/full 2>"$work/err"
    rc=$?
    name="$arguments >/dev/full"
    code 1; err_has "No space left on device"
    [ "$(wc -l <"$work/err")" = 1 ] || fail "$name: told more than once: $(cat "$work/err")"
    # shellcheck disable=SC2086
    "$ink" $arguments >&- 2>"$work/err"
    rc=$?
    name="$arguments >&-"
    code 1
done
"$ink" read --batch 1 a.png b.png a.png b.png 2>"$work/err" | head -c 1 >/dev/null
rc=${PIPESTATUS[0]} name="closed pipe"
{ [ "$rc" = 1 ] || [ "$rc" = 0 ]; } || fail "closed pipe: exit code $rc" # 0: all fitted in before the pipe closed

# ---- a terminal: the text as it comes, control characters kept from it ----
if command -v script >/dev/null; then
    script -qec "'$ink' read b.png a.png" /dev/null >"$work/out" 2>/dev/null </dev/null
    rc=$? name=terminal
    code 0; out_is "shell opti"$'\r\n'"of the various"$'\r\n'"violetter"$'\r\n'"$text01"$'\r\n'
    script -qec "'$ink' read none.png a.png" /dev/null >"$work/out" 2>/dev/null </dev/null
    rc=$? name="terminal with a bad input"
    code 1; out_is "inkstone: none.png: No such file or directory"$'\r\n'"$text01"$'\r\n'
    script -qec "'$ink' read --json a.png" /dev/null >"$work/out" 2>/dev/null </dev/null
    rc=$? name="JSON on a terminal"
    code 0; out_has '{"file":"a.png","task":"ocr","text":"https://dogagen.examp"'
fi

# ---- signals: nothing half-written, the caller learns why ----
for signal in INT TERM HUP; do
    echo before >keep.txt
    # SIGINT is ignored in background jobs of a script: a subshell with job control gives it back.
    (
        set -m
        # shellcheck disable=SC2046
        "$ink" read --threads 1 --batch 2 -o keep.txt $(yes b.png | head -n 3000) 2>/dev/null &
        pid=$!
        for _ in $(seq 100); do # until it has begun its output
            [ -n "$(find . -name 'keep.txt.*')" ] && break
            sleep 0.05
        done
        sleep 0.5
        kill -$signal $pid
        wait $pid
        exit $?
    )
    rc=$? name="SIG$signal"
    code $((128 + $(kill -l $signal)))
    [ "$(cat keep.txt)" = before ] || fail "SIG$signal: the file was touched"
    [ -z "$(find . -name 'keep.txt.*')" ] || fail "SIG$signal: a temporary file is left"
done
finish
