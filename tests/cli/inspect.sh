# inspect.sh - inkstone check, kernels, devices, selftest, synth, bench on small things.
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

run "check" "$ink" check
code 0; err_empty
out_has "embedded mini model: plans completely on cpu ("
for plan in vision projector prefill decode; do
    out_has "plan $plan: "
done
out_has "GEMM nodes in FP32: 0"
run "check --json" "$ink" check --json "$src/models/mini"
code 0; out_has '"plans_completely": true'; out_has '"fp32_gemm_nodes": 0'; out_has '"name": "decode"'
run "check of modules in F32" "$ink" check --fp32-modules visual,mlp_AR
code 0; out_has "GEMM nodes in FP32: 39"; out_has "cast_f32"
run "check --delete-pass all" "$ink" check --delete-pass all
code 0; out_has "(deleted) 0 applied"
run "check, no pass of that name" "$ink" check --delete-pass fuse_everything
code 1; err_has "no pass is called 'fuse_everything'"

# ---- broken checkpoints: everything that is wrong with the tensors at once ----
run "no model" "$ink" check none
code 1; err_has "none: No such file or directory"; out_is ""
run "a file" "$ink" check "$src/models/mini/model.safetensors"
code 1; err_has "is not a directory"
mkdir empty
run "an empty folder" "$ink" check empty
code 1; err_has "empty/config.json"
copy() { rm -rf broken && mkdir broken && cp "$src"/models/mini/*.json "$src"/models/mini/*.jinja "$src"/models/mini/*.safetensors broken/; }
# swap FROM TO FILE: bytes of equal length, in place.
swap() { LC_ALL=C sed -i "s/$1/$2/g" "broken/$3"; }
copy; rm broken/model.safetensors
run "no weights" "$ink" check broken
code 1; err_has "broken holds no model.safetensors"
copy; rm broken/tokenizer.json
run "no tokenizer" "$ink" check broken
code 1; err_has "broken/tokenizer.json"
copy; head -c 100000 "$src/models/mini/model.safetensors" >broken/model.safetensors
run "short weights" "$ink" check broken
code 1; err_has "broken/model.safetensors is truncated"
copy; swap layers.0.self_attn.q_proj layers.0.self_attn.q_proX model.safetensors; swap layers.1.input_layernorm layers.1.input_layernorX model.safetensors
run "missing tensors" "$ink" check broken
code 1; err_has "model.layers.0.self_attn.q_proj.weight"; err_has "model.layers.1.input_layernorm.weight"
copy; printf '{"hidden_size": ' >broken/config.json
run "cut config" "$ink" check broken
code 1; err_has "broken/config.json: "
copy; echo '{% for m in messages %}{{ m.content }}{% endfor %} Bot: ' >broken/chat_template.jinja
run "unknown template" "$ink" check broken
code 1; err_has "--assistant-prefix"
run "unknown template, prefix given" "$ink" check --assistant-prefix 'Assistant: ' broken
code 0
run "every gap at once" "$ink" check --disable 'layer_norm:*:bf16,rms_norm:cpu:bf16'
code 1; out_is ""
[ "$(grep -c E_MISSING_KERNEL "$work/err")" = 4 ] || fail "gaps: $(cat "$work/err")"

# ---- kernels, devices ----
run "kernels" "$ink" kernels
code 0; all=$(wc -l <"$work/out")
run "kernels of an op" "$ink" kernels --op conv2d --dtype bf16 --backend cpu
code 0; out_has "conv2d_bf16_portable"
grep -vE '^(op|conv2d) ' "$work/out" && fail "kernels --op conv2d lists another"
[ "$(wc -l <"$work/out")" -lt "$all" ] || fail "the filter lets all pass"
run "kernels --json" "$ink" kernels --op linear --json
code 0; out_has '"op": "linear"'
run "kernels --markdown" "$ink" kernels --op linear --markdown
code 0; out_has "| linear | cpu |"
run "kernels of no op" "$ink" kernels --op convolution
code 1; err_has "no op is called 'convolution'"
run "kernels of no backend" "$ink" kernels --backend tpu
code 1; err_has "no backend is called 'tpu': cpu, hip, cuda"
run "kernels of no dtype" "$ink" kernels --dtype fp8
code 1; err_has "no dtype is called 'fp8'"
run "devices" "$ink" devices
code 0; out_has "cpu"; out_has "threads"
run "devices --json" "$ink" devices --json
code 0; out_has '"backend": "cpu"'
run "devices, capped" env INK_CPU=portable "$ink" devices
code 0; out_has "portable"

# ---- selftest: small; a case descriptor runs again ----
run "selftest" "$ink" selftest --op layer_norm --dtype bf16 --cases 3 --seed 5
code 0; out_has "layer_norm"
run "selftest --json" "$ink" selftest --op layer_norm --cases 2 --json
code 0; out_has '"failed": 0'
run "selftest of no op" "$ink" selftest --op layer_normal
code 1

# ---- synth and bench ----
run "synth" "$ink" synth --preset paddleocr-vl-tiny --layers 1,1 tiny
code 0; [ -s tiny/model.safetensors ] || fail "synth wrote no weights"
run "synth into a used folder" "$ink" synth --preset paddleocr-vl-tiny tiny
code 1; err_has "tiny is not empty"
run "synth, no such preset" "$ink" synth --preset huge other
code 1; err_has "huge"
run "check of a synthetic model" "$ink" check tiny
code 0; out_has "tiny: plans completely"
run "reading with a synthetic model" "$ink" read --model tiny --max-tokens 3 --json "$golden/01.png"
code 0; out_has '"generated":'
run "bench" "$ink" bench --images 56x56 --contexts 40 --repeat 1 --threads 1
code 0; out_has "vision + projector 56x56: "; out_has "context 40, 1 sequence: prefill"
finish
