#!/usr/bin/env python3
"""Compares Inkstone with transformers on one checkpoint: same pixel values, teacher-forced ids; times and differences.

    compare_transformers.py --model DIR --inkstone build/release/inkstone [--grid 54x72] [--prompt 64] [--steps 16]
                            [--threads N] [--dtypes bf16,f32]

Random pixel values and ids (seed printed). For each dtype: transformers' logits and projector output in that dtype, Inkstone's,
and, where FP32 is among the dtypes, both distances from transformers' FP32. Needs torch, transformers (5.17), safetensors.
"""
import argparse
import os
import subprocess
import tempfile
import time
import warnings

import torch
from safetensors.torch import load_file, save_file


def rms(a, b):
    return float((a.double() - b.double()).pow(2).mean().sqrt())


def timed(f, times):
    best = []
    for _ in range(times):
        t = time.perf_counter()
        out = f()
        best.append(time.perf_counter() - t)
    return out, sorted(best)[len(best) // 2]


@torch.no_grad()
def reference(folder, dtype, case, repeat):
    from transformers import PaddleOCRVLForConditionalGeneration
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        m = PaddleOCRVLForConditionalGeneration.from_pretrained(folder, dtype=dtype).eval()
    for w in caught:
        print("warning while loading:", str(w.message)[:160])
    ids, grid, pix = case["input_ids"][None], case["image_grid_thw"][None], case["pixel_values"].to(dtype)
    kinds = (ids == m.config.image_token_id).int()
    features = {}

    def hook(mod, args, out):
        features["projector"] = (out[0] if isinstance(out, (tuple, list)) else out).float().clone()
    handle = m.model.projector.register_forward_hook(hook)
    pos, delta = m.model.get_rope_index(ids, kinds, image_grid_thw=grid)

    def image():
        return m.model.get_image_features(pix, grid)
    _, vision_s = timed(image, repeat)
    t = time.perf_counter()
    out = m(input_ids=ids, pixel_values=pix, image_grid_thw=grid, mm_token_type_ids=kinds, position_ids=pos, use_cache=True, logits_to_keep=1)
    prefill_s = time.perf_counter() - t
    logits, cache, n, steps = [out.logits[0, -1].float()], out.past_key_values, ids.shape[1], []
    for i, token in enumerate(case["forced_ids"].tolist()):
        p = torch.full((3, 1, 1), n + i) + delta
        t = time.perf_counter()
        out = m(input_ids=torch.tensor([[token]]), position_ids=p, past_key_values=cache, use_cache=True)
        steps.append(time.perf_counter() - t)
        logits.append(out.logits[0, -1].float())
    handle.remove()
    steps.sort()
    return dict(projector=features["projector"].reshape(-1, features["projector"].shape[-1]), logits=torch.stack(logits),
                vision_s=vision_s, prefill_s=prefill_s, step_s=steps[len(steps) // 2] if steps else 0)


def ours(a, dtype, case_path, out_path):
    cmd = [a.inkstone, "bench", "--teacher", case_path, "--out", out_path, "--dtype", dtype, "--threads", str(a.threads), "--max-pixels",
           str(a.max_pixels), a.model]
    subprocess.run(cmd, check=True)
    return load_file(out_path)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--model", required=True)
    ap.add_argument("--inkstone", default="build/release/inkstone")
    ap.add_argument("--grid", default="28x28")
    ap.add_argument("--prompt", type=int, default=16)
    ap.add_argument("--steps", type=int, default=8)
    ap.add_argument("--threads", type=int, default=os.cpu_count())
    ap.add_argument("--dtypes", default="f32,bf16")
    ap.add_argument("--repeat", type=int, default=3)
    ap.add_argument("--seed", type=int, default=int(time.time()))
    a = ap.parse_args()
    torch.set_num_threads(a.threads)
    torch.manual_seed(a.seed)
    gh, gw = map(int, a.grid.split("x"))
    a.max_pixels = max(gh * gw * 196, 112896)
    import json
    config = json.load(open(os.path.join(a.model, "config.json")))
    text = config.get("text_config", config)
    image, vocab = config["image_token_id"], text["vocab_size"]
    words = torch.randint(3, min(vocab, 100000) if vocab > 100000 else image - 4, (a.prompt,))
    ids = torch.cat([words[:4], torch.full((gh * gw // 4,), image), words[4:]])
    case = dict(pixel_values=torch.rand(gh * gw, 3, 14, 14) * 2 - 1, image_grid_thw=torch.tensor([1, gh, gw]), input_ids=ids,
                forced_ids=torch.randint(3, 1000, (a.steps,)))
    print("seed", a.seed, "grid", gh, gw, "prompt", len(ids), "threads", a.threads, "torch", torch.__version__)
    kinds = dict(f32=torch.float32, bf16=torch.bfloat16, f16=torch.float16)
    with tempfile.TemporaryDirectory() as tmp:
        case_path = os.path.join(tmp, "case.safetensors")
        save_file({k: v.contiguous() for k, v in case.items()}, case_path)
        exact = None
        for d in a.dtypes.split(","):
            ref = reference(a.model, kinds[d], case, a.repeat)
            mine = ours(a, d, case_path, os.path.join(tmp, "out.safetensors"))
            print("%s transformers: vision+projector %.1f ms, prefill with image %.1f ms, step %.2f ms" %
                  (d, ref["vision_s"] * 1e3, ref["prefill_s"] * 1e3, ref["step_s"] * 1e3))
            for k in ("projector", "logits"):
                scale = float(ref[k].abs().max())
                line = "%s %s: RMS %.3g, max %.3g of %.3g" % (d, k, rms(mine[k], ref[k]), float((mine[k] - ref[k]).abs().max()), scale)
                if exact is not None:
                    line += "; from FP32: ours %.3g, transformers %.3g" % (rms(mine[k], exact[k]), rms(ref[k], exact[k]))
                print(line)
            print("%s same arg-max: %d of %d" % (d, int((mine["logits"].argmax(-1) == ref["logits"].argmax(-1)).sum()), len(ref["logits"])))
            if d == "f32":
                exact = ref


if __name__ == "__main__":
    main()
