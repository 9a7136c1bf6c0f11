# Bash completion of inkstone. Commands, options and their values are read from the program's own help, so that they are always
# those of the program at hand.

# Commands, from the lines "  read      text of images".
_inkstone_commands() { "$1" --help 2>/dev/null | sed -n 's/^  \([a-z][a-z]*\)  *[a-z].*/\1/p' | grep -v '^inkstone$'; }

# The option lines of a command's help.
_inkstone_options() { "$1" "$2" --help 2>/dev/null | sed -e '/^examples\{0,1\}:/,$d' -e '/^  *-/!d'; }

_inkstone() {
    local program=${COMP_WORDS[0]} command=${COMP_WORDS[1]} current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        mapfile -t COMPREPLY < <(compgen -W "$(_inkstone_commands "$program") help --help --version" -- "$current")
        return
    fi
    if [[ $command == help ]]; then
        ((COMP_CWORD > 2)) || mapfile -t COMPREPLY < <(compgen -W "$(_inkstone_commands "$program")" -- "$current")
        return
    fi
    local options values
    options=$(_inkstone_options "$program" "$command")
    if [[ $current == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(grep -oE '(^|[ ,])--?[a-z][a-z0-9-]*' <<<"$options")" -- "$current")
        return
    fi
    if [[ $current == "=" ]]; then # --task=
        current=
    elif [[ $previous == "=" ]]; then # --task=ta
        previous=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    if [[ $previous == --* ]]; then # "--task ocr|table|..." or "--profile[=json|table]"
        values=$(sed -nE "s/^  *(.*[ ,])?$previous[ []=?([a-z0-9]+(\|[a-z0-9]+)+).*/\2/p" <<<"$options")
        mapfile -t COMPREPLY < <(compgen -W "${values//|/ }" -- "$current")
    fi
    # Nothing of the program's own: files, by -o default.
}
complete -o default -o bashdefault -F _inkstone inkstone
