# read.sh - inkstone read: texts, order, JSON, tasks and formats, odd inputs.
. "$(dirname "$0")/lib.sh"

run "one image" "$ink" read "$golden/01.png"
code 0; out_is "$text01"$'\n'; err_empty

run "several, in order" "$ink" read "$golden/05.png" "$golden/01.png" "$golden/05.png"
code 0; out_is "$text05"$'\n'"$text01"$'\n'"$text05"$'\n'; err_empty

run "one at a time" "$ink" read --batch 1 "$golden/05.png" "$golden/01.png"
code 0; out_is "$text05"$'\n'"$text01"$'\n'

run "blank" "$ink" read "$golden/13.png"
code 0; out_is $'\n'; err_empty

run "standard input" "$ink" read - <"$golden/01.png"
code 0; out_is "$text01"$'\n'

run "standard input twice" "$ink" read - - <"$golden/01.png"
code 1; out_is "$text01"$'\n'; err_has "empty"

for dtype in bf16 f16 f32; do
    run "--dtype $dtype" "$ink" read --dtype $dtype --threads 1 "$golden/01.png"
    code 0; out_is "$text01"$'\n'
done

run "a directory as model" "$ink" read --model "$src/models/mini" "$golden/01.png"
code 0; out_is "$text01"$'\n'

# ---- bad inputs fail alone ----
: >"$work/zero.png"
printf 'just text\n' >"$work/text.png"
printf 'GIF89a\1\0\1\0\0\0\0' >"$work/gif.jpg"
cp "$golden/01.png" "$work/png.jpg"
head -c 400 "$golden/05.png" >"$work/cut.png"
run "bad inputs among good" "$ink" read "$work/zero.png" "$golden/01.png" "$work/none.png" "$work" "$work/text.png" \
    "$work/gif.jpg" "$work/png.jpg" "$work/cut.png" "$golden/05.png"
code 1; out_is "$text01"$'\n'"$text01"$'\n'"$text05"$'\n'
err_has "inkstone: $work/zero.png: image file is empty"
err_has "inkstone: $work/none.png: No such file or directory"
err_has "inkstone: $work: is a directory"
err_has "inkstone: $work/text.png: "
err_has "inkstone: $work/gif.jpg: GIF"
err_has "inkstone: $work/cut.png: "
[ "$(wc -l <"$work/err")" = 6 ] || fail "bad inputs: $(cat "$work/err")"

chmod 000 "$work/zero.png"
if ! [ -r "$work/zero.png" ]; then # not for root
    run "unreadable" "$ink" read "$work/zero.png"
    code 1; err_has "Permission denied"
fi

# ---- names (field report 151) ----
long=$(printf 'n%.0s' $(seq 240)).png
for file in "页面 扫描.png" "😀 [x] {a,b} 'q' \"d\".png" "-dash.png" $'new\nline.png' $'\xff\xfe.png' "$long"; do
    mkdir -p "$work/目录 ü"
    cp "$golden/01.png" "$work/目录 ü/$file"
    run "name $file" "$ink" read "$work/目录 ü/$file" -o "$work/目录 ü/out"
    code 0
    [ "$(cat "$work/目录 ü/out")" = "$text01" ] || fail "name $file: wrong file"
done
cd "$work/目录 ü" || exit 1
run "after --" "$ink" read -- -dash.png
code 0; out_is "$text01"$'\n'
cp -r "$src/models/mini" "$work/模型 m"
run "model in a named folder" "$ink" read --model "$work/模型 m" "$golden/01.png"
code 0; out_is "$text01"$'\n'
cd "$work" || exit 1

# ---- JSON: exactly these fields; times are masked ----
mask() { sed -E 's/"timing_ms":\{"decode":[0-9.e+-]+,"vision":[0-9.e+-]+,"prefill":[0-9.e+-]+,"generate":[0-9.e+-]+\}/TIMES/' "$work/out" >"$work/masked" && mv "$work/masked" "$work/out"; }
cp "$golden/01.png" a.png
cp "$golden/13.png" b.png
cp "$golden/10.png" t.png
run "json" "$ink" read --json a.png none.png b.png
code 1; mask
out_is '{"file":"a.png","task":"ocr","text":"https://dogagen.examp","finish_reason":"stop","loop_guard":false,"tokens":{"prompt":27,"image":7,"generated":17},TIMES}
{"file":"none.png","task":"ocr","text":"","finish_reason":null,"loop_guard":false,"tokens":{"prompt":0,"image":0,"generated":0},TIMES,"error":{"code":"not_found","message":"none.png: No such file or directory"}}
{"file":"b.png","task":"ocr","text":"","finish_reason":"stop","loop_guard":false,"tokens":{"prompt":56,"image":36,"generated":0},TIMES}
'
run "json of a table" "$ink" read --json --task table t.png
code 0
out_has '"text":"<fcel>0.0<fcel>Omsk<nl>'
out_has ',"html":"<table><tr><td>0.0</td><td>Omsk</td></tr>'
run "json, markdown asked for" "$ink" read --json --task table --format markdown t.png
out_has ',"markdown":"|'
run "json, cut" "$ink" read --json --max-tokens 3 a.png
code 0; out_has '"finish_reason":"length","loop_guard":false'
out_has '"generated":3}'
cp a.png $'\xffx.png'
run "json, name that is not UTF-8" "$ink" read --json $'\xffx.png'
code 0; out_has $'{"file":"\xef\xbf\xbdx.png",'
run "json of standard input" "$ink" read --json - <a.png
code 0; out_has '{"file":"-",'
run "json, one line per input" "$ink" read --json "$golden"/0[124579].png "$golden"/0[368].jpg
code 0; [ "$(wc -l <"$work/out")" = 9 ] || fail "json lines"

# ---- tasks and formats ----
run "table as HTML" "$ink" read --task table --format html t.png
code 0; out_has '<table><tr><td>0.0</td><td>Omsk</td></tr>'
run "table as Markdown" "$ink" read --task table --format markdown t.png
code 0; out_has '| 0.0 | Omsk |'
run "text as HTML" "$ink" read --format html "$golden/07.png"
code 0; out_has 'X!Ac `&amp;&lt;'
for task in ocr table formula chart seal spotting; do
    run "task $task" "$ink" read --task $task --max-tokens 4 a.png
    code 0
done
run "spotting json" "$ink" read --json --task spotting --max-tokens 4 a.png
code 0; out_has '"polygons":['
run "free prompt" "$ink" read --prompt "OCR:" a.png
code 0; out_is "$text01"$'\n'

run "cut text is told" "$ink" read --max-tokens 3 a.png
code 0; err_is "inkstone: a.png: the answer reached the token limit"

# ---- sampling ----
run "seed 7" "$ink" read --temperature 5 --seed 7 --max-tokens 20 a.png
first=$(cat "$work/out")
run "seed 7 again" "$ink" read --temperature 5 --seed 7 --max-tokens 20 a.png
[ "$first" = "$(cat "$work/out")" ] || fail "the same seed gives two texts"
run "seed 7 behind a bad file" "$ink" read --temperature 5 --seed 6 --max-tokens 20 none.png a.png
[ "$first" = "$(cat "$work/out")" ] || fail "the seed of input i is not seed + i"
run "seed 8" "$ink" read --temperature 5 --seed 8 --max-tokens 20 a.png
[ "$first" != "$(cat "$work/out")" ] || fail "another seed gives the same text"
run "top-p near 0 is greedy" "$ink" read --temperature 5 --top-p 0.000001 a.png
out_is "$text01"$'\n'

# ---- sizes (field report 100) ----
run "small budget" "$ink" read --json --max-pixels 15680 "$golden/12.jpg"
code 0; out_has '"finish_reason":'

# ---- profile ----
run "profile" "$ink" read --profile a.png
code 0; out_is "$text01"$'\n'; err_has "GEMM calls in FP32: 0"
run "profile of modules in F32" "$ink" read --profile=json --fp32-modules visual,mlp_AR a.png
code 0; out_is "$text01"$'\n'; err_has '"fp32_gemm_calls":39}'; err_has '"op":"cast"'
run "profile to a file" "$ink" read --profile=json:p.json a.png
code 0; err_empty
grep -q '"fp32_gemm_calls":0}' p.json || fail "no profile in p.json"
run "profile table to a file" "$ink" read --profile=table:p.txt a.png
code 0; grep -q "^kernel  *dtype" p.txt || fail "no profile in p.txt"
run "profile to nowhere" "$ink" read --profile=json:none/p.json a.png
code 1; out_is "$text01"$'\n'; err_has "none/p.json: cannot create"

# ---- instruction sets (field report 58) ----
run "INK_CPU=portable" env INK_CPU=portable "$ink" read --threads 1 a.png
code 0; out_is "$text01"$'\n'
run "INK_CPU=none" env INK_CPU=none "$ink" read a.png
code 1; err_has "INK_CPU=none: expected portable, avx2, avx512 or amx"
run "missing kernel" env INK_DISABLE='conv2d:*:bf16' "$ink" read a.png
code 1; err_has "E_MISSING_KERNEL op=conv2d"; out_is ""

finish
