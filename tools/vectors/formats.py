#!/usr/bin/env python3
"""Makes tests/data/formats: files as the reference libraries write them.

    formats.py OUT_DIR

Needs torch, safetensors, transformers 5.17, pillow. Writes
  all_types.safetensors   every storage type of the safetensors library; values 0..5 in a 2 x 3 tensor, and a scalar (7), an
                          empty tensor and one of rank 7
  config-flat.json        the published config.json's fields and form
  config-nested.json      the same after transformers read and saved it
  processor-resaved.json  the image processor's settings in the nested form that transformers saves
  names-resaved.json      tensor names of a small model: hub names and what save_pretrained would call them without its
                          renaming back (the names of the modules in memory)
"""
import json
import os
import sys
import tempfile

import torch
from safetensors.torch import save_file
from transformers import AutoConfig, AutoProcessor, PaddleOCRVLConfig, PaddleOCRVLForConditionalGeneration

FLAT = {
    "architectures": ["PaddleOCRVLForConditionalGeneration"], "attention_probs_dropout_prob": 0.0, "bos_token_id": 1,
    "compression_ratio": 1.0, "eos_token_id": 2, "head_dim": 128, "hidden_act": "silu", "hidden_dropout_prob": 0.0,
    "hidden_size": 1024, "ignored_index": -100, "image_token_id": 100295, "intermediate_size": 3072,
    "max_position_embeddings": 131072, "max_sequence_length": None, "model_type": "paddleocr_vl",
    "num_attention_heads": 16, "num_hidden_layers": 18, "num_key_value_heads": 2, "pad_token_id": 0, "rms_norm_eps": 1e-05,
    "rope_scaling": {"mrope_section": [16, 24, 24], "rope_type": "default", "type": "default"}, "rope_theta": 500000,
    "sliding_window": None, "tie_word_embeddings": False, "torch_dtype": "bfloat16", "use_bias": False, "use_cache": False,
    "use_flash_attention": False, "video_token_id": 101307,
    "vision_config": {
        "architectures": ["SiglipVisionModel"], "attention_dropout": 0.0, "hidden_act": "gelu_pytorch_tanh",
        "hidden_size": 1152, "image_size": 384, "intermediate_size": 4304, "layer_norm_eps": 1e-06,
        "model_type": "paddleocr_vl", "num_attention_heads": 16, "num_channels": 3, "num_hidden_layers": 27,
        "pad_token_id": 0, "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2, "tokens_per_second": 2,
        "torch_dtype": "bfloat16"},
    "vision_end_token_id": 101306, "vision_start_token_id": 101305, "vocab_size": 103424, "weight_share_add_bias": True,
    "use_3d_rope": True, "rope_is_neox_style": True,
}


def all_types(path):
    v = torch.arange(6).reshape(2, 3)
    types = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i64": torch.int64,
             "i32": torch.int32, "i16": torch.int16, "i8": torch.int8, "u8": torch.uint8, "u16": torch.uint16,
             "u32": torch.uint32, "u64": torch.uint64, "f8_e4m3": torch.float8_e4m3fn, "f8_e5m2": torch.float8_e5m2,
             "c64": torch.complex64}
    t = {n: v.to(d) for n, d in types.items()}
    t["bool"] = v % 2 == 1
    t["scalar"] = torch.tensor(7, dtype=torch.float32)
    t["empty"] = torch.zeros(0, 4)
    t["rank7"] = torch.zeros(1, 1, 1, 1, 1, 1, 2)
    save_file(t, path, metadata={"format": "pt"})


def dump(path, obj):
    with open(path, "w") as f:
        json.dump(obj, f, indent=1)
        f.write("\n")


def small_names():
    c = json.loads(json.dumps(FLAT))
    c.update(hidden_size=16, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1, head_dim=8,
             vocab_size=32, image_token_id=5, vision_start_token_id=6, vision_end_token_id=7, video_token_id=8)
    c["rope_scaling"]["mrope_section"] = [2, 1, 1]
    c["vision_config"].update(hidden_size=16, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2)
    with tempfile.TemporaryDirectory() as d:
        dump(d + "/config.json", c)
        model = PaddleOCRVLForConditionalGeneration(AutoConfig.from_pretrained(d))
    return sorted(n for n in model.state_dict())


def main():
    out = sys.argv[1]
    here = os.path.dirname(os.path.abspath(__file__))
    all_types(out + "/all_types.safetensors")
    dump(out + "/config-flat.json", FLAT)
    with tempfile.TemporaryDirectory() as d:
        dump(d + "/config.json", FLAT)
        PaddleOCRVLConfig.from_pretrained(d).save_pretrained(d + "/out")
        dump(out + "/config-nested.json", json.load(open(d + "/out/config.json")))
        p = AutoProcessor.from_pretrained(here + "/../../models/mini")
        p.save_pretrained(d + "/proc")
        dump(out + "/processor-resaved.json", json.load(open(d + "/proc/processor_config.json")))
    dump(out + "/names-resaved.json", small_names())


main()
