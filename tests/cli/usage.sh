# usage.sh - arguments: help, versions, mistakes, each with exit code 2 and a message that names them.
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
commands="read check kernels devices selftest bench synth"

run "no command" "$ink"
code 2; out_is ""; err_has "usage: inkstone COMMAND"
for form in --help -h help; do
    run "$form" "$ink" $form
    code 0; out_has "usage: inkstone COMMAND"; err_empty
    for command in $commands; do
        out_has "  $command "
    done
done
run "--version" "$ink" --version
code 0; grep -qE '^inkstone [0-9]+\.[0-9]+\.[0-9]+$' "$work/out" || fail "--version: $(cat "$work/out")"
run "-V" "$ink" -V
code 0
run "unknown command" "$ink" raed
code 2; out_is ""; err_is "inkstone: no command 'raed'
See \`inkstone --help\`."

for command in $commands; do
    for form in --help -h; do
        run "$command $form" "$ink" $command $form
        code 0; out_has "usage: inkstone $command"; out_has "example"; err_empty
        cp "$work/out" "$work/help"
    done
    run "help $command" "$ink" help $command
    code 0; cmp -s "$work/out" "$work/help" || fail "help $command differs from $command --help"
    run "$command --bogus" "$ink" $command --bogus
    code 2; out_is ""; err_is "inkstone $command: unrecognized option '--bogus'
See \`inkstone $command --help\`."
    run "$command -?" "$ink" $command -Z
    code 2; err_has "inkstone $command: invalid option -- 'Z'"
done

# bad COMMAND... MESSAGE: exit code 2, nothing on stdout, the message on stderr.
bad() {
    message=${!#}
    set -- "${@:1:$#-1}"
    run "$*" "$ink" "$@"
    code 2; out_is ""; err_has "$message"; err_has "See \`inkstone $1 --help\`."
}
bad read "no image given"
bad read -- "no image given"
bad read a.png --task "option '--task' requires an argument"
bad read a.png --json=yes "option '--json' doesn't allow an argument"
bad read a.png --task words "--task: 'words', expected ocr, table, formula, chart, seal or spotting"
bad read a.png --task OCR "--task: 'OCR'"
bad read a.png --format text "--format: 'text', expected raw, html or markdown"
bad read a.png --dtype f64 "--dtype: 'f64', expected bf16, f16 or f32"
bad read a.png --dtype int8 "--dtype: 'int8'"
bad read a.png --threads 0 "--threads: '0' is not a whole number from 1 to 1024"
bad read a.png --threads 2x "--threads: '2x'"
bad read a.png --threads "" "--threads: ''"
bad read a.png --threads 99999999999999999999 "--threads: '99999999999999999999'"
bad read a.png --max-tokens -1 "--max-tokens: '-1'"
bad read a.png --max-tokens 1.5 "--max-tokens: '1.5'"
bad read a.png --min-pixels 0 "--min-pixels: '0'"
bad read a.png --max-pixels many "--max-pixels: 'many'"
bad read a.png --temperature -1 "--temperature: '-1' is not a number from 0 to 100"
bad read a.png --temperature nan "--temperature: 'nan'"
bad read a.png --top-p 0 "--top-p: '0'"
bad read a.png --top-p 1.01 "--top-p: '1.01'"
bad read a.png --seed -5 "--seed: '-5'"
bad read a.png --repetition-penalty 0 "--repetition-penalty: '0'"
bad read a.png --batch 0 "--batch: '0'"
bad read a.png --profile=xml "--profile: 'xml', expected json or table"
bad read a.png --max 3 "option '--max' is ambiguous"
bad check a b "one model at a time"
bad check --model a b "one model at a time"
bad kernels conv2d "unexpected argument 'conv2d'"
bad devices cpu "unexpected argument 'cpu'"
bad selftest all "unexpected argument 'all'"
bad selftest --cases 0 "--cases: '0'"
bad bench a b "one model at a time"
bad bench --synthetic a "one model at a time"
bad bench --images 10 "--images: '10', expected WxH"
bad bench --images 0x5 "--images: '0x5'"
bad bench --images "$(printf '8x8,%.0s' $(seq 17))" "--images: more than 16 sizes"
bad bench --contexts 5,x "--contexts: '5,x'"
bad bench --sequences 65 "--sequences: '65'"
bad synth "no directory given"
bad synth a b "one directory at a time"
bad synth --layers 2 a "--layers: '2', expected two positive numbers"

# Long options may be cut short while they are unique; options may stand behind the inputs; the last of a kind counts.
run "abbreviated" "$ink" read --tas table --thr 1 --js --max-t 2 "$golden/01.png"
code 0; out_has '"task":"table"'
run "options after inputs, repeated" "$ink" read "$golden/01.png" --task table --json --task=ocr
code 0; out_has '"task":"ocr"'
run "limits out of order" "$ink" read --min-pixels 9000 --max-pixels 8000 "$golden/01.png"
code 1; err_is "inkstone: min_pixels 9000 is larger than max_pixels 8000"
finish
