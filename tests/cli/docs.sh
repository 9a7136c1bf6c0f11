# docs.sh - every option of every --help is offered by the completion and described in the manual page, every option is one that
# the program takes, and the header compiles as strict C and C++.
. "$(dirname "$0")/lib.sh"
commands="read check kernels devices selftest bench synth"

sh "$src/packaging/man.sh" "$ink" 1.2.3 >"$work/inkstone.1" || fail "man.sh"
sed 's/\\-/-/g' "$work/inkstone.1" >"$work/page"
grep -q 'inkstone 1.2.3' "$work/page" || fail "the page lacks the version"
if command -v groff >/dev/null; then
    groff -man -Tutf8 -ww -Kutf8 "$work/inkstone.1" >/dev/null 2>"$work/err"
    name="groff"; err_empty
fi

# complete WORD...: what the completion offers for the last word.
complete_words() {
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    COMPREPLY=()
    _inkstone
    printf '%s\n' "${COMPREPLY[@]}"
}
offers() { # offers WANTED WORD...
    wanted=$1
    shift
    complete_words "$ink" "$@" | grep -qxF -- "$wanted" || fail "completion of '$*' does not offer '$wanted'"
}
. "$src/completions/inkstone.bash"

for command in $commands; do
    offers "$command" "${command:0:1}"
    offers "$command" help "${command:0:1}"
    grep -qx ".SS inkstone $command" "$work/page" || fail "the page lacks $command"
    "$ink" $command --help | sed '/^examples\{0,1\}:/,$d' | grep -oE -- '--[a-z][a-z0-9-]*' | sort -u >"$work/options"
    [ -s "$work/options" ] || fail "$command has no options"
    while read -r option; do
        offers "$option" "$command" "--"
        grep -qF -- "$option" "$work/page" || fail "the page lacks $option of $command"
        # The program knows it: no "unrecognized option".
        "$ink" $command "$option" --help >"$work/out" 2>"$work/err" </dev/null
        grep -q "unrecognized" "$work/err" && fail "$command does not take $option"
    done <"$work/options"
done
offers table read --task t
offers table read --task = t
offers formula read --task ""
offers f16 check --dtype f
offers hip kernels --backend h
offers markdown read a.png --format m
offers json read --profile = j
[ -z "$(complete_words "$ink" read sc)" ] || fail "file names are bash's own business"
[ -z "$(complete_words "$ink" read --output out)" ] || fail "values without a list are bash's own business"
if command -v zsh >/dev/null; then
    zsh -n "$src/completions/_inkstone" || fail "zsh: syntax"
fi

# ---- the header ----
cat >"$work/use.c" <<'C'
#include <inkstone/inkstone.h>
#include <inkstone/inkstone.h>
static bool text(void *user, size_t index, const char *s, size_t n) { (void)user; (void)index; (void)s; return n > 0; }
ink_status use(const char *path);
ink_status use(const char *path)
{
    ink_model_options mo = INK_MODEL_OPTIONS_DEFAULT;
    ink_session_options so = INK_SESSION_OPTIONS_DEFAULT;
    ink_read_options ro = INK_READ_OPTIONS_DEFAULT;
    ink_model *m;
    ink_session *s;
    ink_image *i;
    ink_result r;
    mo.dtype = INK_F32;
    so.profile = true;
    ro.on_text = text;
    if (ink_model_load(path, &mo, &m) || ink_session_create(m, &so, &s) || ink_image_load(path, &i) || ink_read(s, i, &ro, &r))
        return INK_IO;
    ink_result_free(&r);
    return INK_OK;
}
C
cp "$work/use.c" "$work/use.cpp"
for compiler in gcc clang; do
    command -v $compiler >/dev/null || continue
    for standard in c99 c11 c17; do
        $compiler -std=$standard -pedantic -Wall -Wextra -Wshadow -Wstrict-prototypes -Werror -I"$src/include" -fsyntax-only "$work/use.c" || fail "$compiler -std=$standard"
    done
done
for compiler in g++ clang++; do
    command -v $compiler >/dev/null || continue
    for standard in c++11 c++17 c++20; do
        $compiler -std=$standard -pedantic -Wall -Wextra -Wold-style-cast -Werror -I"$src/include" -fsyntax-only "$work/use.cpp" ||
            fail "$compiler -std=$standard"
    done
done
finish
