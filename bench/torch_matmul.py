#!/usr/bin/env python3
"""Times torch's BF16 (or other) linear on the CPU at the shapes of bench_gemm, plain and with its pre-packed weights.

    torch_matmul.py [--threads N] [--m 256,1024,4744] [--dtype bf16|f32|f16]

Prints one CSV line per shape: m,n,k,plain GFLOP/s,packed GFLOP/s (0: this build of torch has no packed form).
"""
import argparse
import time

import torch
import torch.nn.functional as F

SHAPES = [(1152, 1152), (4304, 1152), (1152, 4304), (3456, 1152), (4608, 4608), (1024, 4608),
          (2048, 1024), (256, 1024), (1024, 2048), (3072, 1024), (1024, 3072)]


def best(call, flops):
    call()
    n = max(3, min(20, int(2e10 / flops) + 1))
    times = []
    for _ in range(n):
        t = time.perf_counter()
        call()
        times.append(time.perf_counter() - t)
    return flops / min(times) * 1e-9


def packed_form(x, w, b):
    """torch's inductor uses this op: weights reordered once for the batch size."""
    try:
        p = torch.ops.mkldnn._reorder_linear_weight(w, x.shape[0])
        torch.ops.mkldnn._linear_pointwise(x, p, b, "none", [], "")
        return lambda: torch.ops.mkldnn._linear_pointwise(x, p, b, "none", [], "")
    except Exception:
        return None


@torch.no_grad()
def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--threads", type=int, default=torch.get_num_threads())
    ap.add_argument("--m", default="256,1024,4744")
    ap.add_argument("--dtype", default="bf16")
    a = ap.parse_args()
    torch.set_num_threads(a.threads)
    dtype = dict(bf16=torch.bfloat16, f32=torch.float32, f16=torch.float16)[a.dtype]
    print("# torch", torch.__version__, "threads", a.threads, a.dtype)
    for m in map(int, a.m.split(",")):
        for n, k in SHAPES:
            x, w, b = torch.randn(m, k).to(dtype), (torch.randn(n, k) * 0.03).to(dtype), torch.randn(n).to(dtype)
            flops = 2.0 * m * n * k
            plain = best(lambda: F.linear(x, w, b), flops)
            p = packed_form(x, w, b)
            print("%d,%d,%d,%.1f,%.1f" % (m, n, k, plain, best(p, flops) if p else 0), flush=True)


if __name__ == "__main__":
    main()
