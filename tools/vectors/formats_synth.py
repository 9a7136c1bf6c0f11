#!/usr/bin/env python3
"""Checks a synthetic checkpoint (inkstone synth) from outside.

    formats_synth.py DIR SEED [--generate]

Recomputes a sample of every tensor's values from the definition in src/models/paddleocr_vl/synth.h, then loads the
directory with transformers and prints every warning and whatever its loading report holds. Needs torch, safetensors,
transformers 5.17, pillow. One warning is transformers' own and appears with any PaddleOCR-VL checkpoint:
"`PaddleOCRVLProcessor` defines `image_processor_class = 'AutoImageProcessor'`, which is deprecated".
"""
import logging
import sys
import warnings

import numpy as np
import torch
from safetensors import safe_open

MASK = (1 << 64) - 1


def mix(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def random_bits(seed, i):
    return mix(mix((seed + 0x9E3779B97F4A7C15) & MASK) ^ ((i * 0x9E3779B97F4A7C15 + 0xD1B54A32D192ED03) & MASK))


def name_hash(name):
    h = 0xCBF29CE484222325
    for c in name.encode():
        h = ((h ^ c) * 0x100000001B3) & MASK
    return h


def value(name, shape, bits):
    if len(shape) == 1 and not name.endswith("bias"):
        return np.float32((9 * 2**24 + 2 * (bits >> 40)) / (10 * 2.0**24))
    scale = np.float32(0.02) if name.endswith("bias") else np.float32(1 / np.sqrt(np.float64(np.prod(shape[1:]))))
    s = (bits & 0xFFFF) + (bits >> 16 & 0xFFFF) + (bits >> 32 & 0xFFFF) + (bits >> 48) - 131070
    return np.float32(np.float32(s) * np.float32(2.642912e-5)) * scale


def check_values(folder, seed):
    f = safe_open(folder + "/model.safetensors", "pt")
    rng, n = np.random.default_rng(), 0
    for name in f.keys():
        t = f.get_tensor(name)
        flat, stream = t.flatten(), random_bits(seed, name_hash(name))
        assert t.dtype == torch.bfloat16
        for i in {0, flat.numel() - 1, *map(int, rng.integers(0, flat.numel(), 20))}:
            want = torch.tensor(float(value(name, t.shape, random_bits(stream, i)))).to(torch.bfloat16)
            assert want.item() == flat[i].item(), (name, i, want, flat[i])
            n += 1
    print(n, "values of", len(f.keys()), "tensors are as defined")


def check_transformers(folder, generate):
    from PIL import Image
    from transformers import AutoProcessor, PaddleOCRVLForConditionalGeneration
    seen = []
    handler = logging.Handler()
    handler.emit = lambda r: seen.append(r.getMessage())
    logging.getLogger("transformers").addHandler(handler)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model, info = PaddleOCRVLForConditionalGeneration.from_pretrained(folder, output_loading_info=True)
        proc = AutoProcessor.from_pretrained(folder)
    print("loading report:", {k: v for k, v in info.items() if v})
    print("warnings:", sorted(set(seen)) + [str(w.message) for w in caught])
    print("head tied:", model.lm_head.weight.data_ptr() == model.get_input_embeddings().weight.data_ptr(), "dtype:", model.dtype)
    image = Image.new("RGB", (150, 61), (250, 240, 230))
    turn = [{"role": "user", "content": [{"type": "image", "image": image}, {"type": "text", "text": "OCR:"}]}]
    prompt = proc.apply_chat_template(turn, tokenize=False, add_generation_prompt=True)
    want = "<|begin_of_sentence|>User: <|IMAGE_START|><|IMAGE_PLACEHOLDER|><|IMAGE_END|>OCR:\nAssistant:\n"
    assert prompt == want, prompt
    for s in ("Hello world", want, "à 12 €  a\t", "日本 ☃ 😀", "<fcel>1<nl><|LOC_7|>", " lead"):
        ids = proc.tokenizer(s, add_special_tokens=False).input_ids
        assert proc.tokenizer.decode(ids, skip_special_tokens=False) == s, s
    if generate:
        x = proc.apply_chat_template(turn, tokenize=True, add_generation_prompt=True, return_dict=True, return_tensors="pt")
        with torch.no_grad():
            print("generated:", model.generate(**x, max_new_tokens=3)[0, -3:].tolist())


check_values(sys.argv[1], int(sys.argv[2]))
check_transformers(sys.argv[1], "--generate" in sys.argv)
