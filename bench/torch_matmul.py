#!/usr/bin/env python3
"""torch_matmul.py - torch's BF16 linear at the shapes of bench_gemm, to be run beside it on the same machine.

    python3 bench/torch_matmul.py [--threads N] [--m 256,1024,4744] [--dtype bf16|f32] [--rounds N] [--cpu-time] [--csv]

Weights are [N, K] as in a checkpoint and are given to torch.nn.functional.linear as they are, so its packing is timed, as
ours is. A figure is the best of several calls in a round, then the median over rounds."""
import argparse
import statistics
import time

SHAPES = [(1152, 1152), (4304, 1152), (1152, 4304), (3456, 1152), (4608, 4608), (1024, 4608),
          (2048, 1024), (256, 1024), (1024, 2048), (3072, 1024), (1024, 3072)]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--threads", type=int, default=0)
    p.add_argument("--m", default="256,1024,4744")
    p.add_argument("--dtype", default="bf16", choices=["bf16", "f32"])
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--cpu-time", action="store_true", help="with one thread: processor time, for a shared machine")
    p.add_argument("--shapes", default="", help="only these, e.g. 1152x1152,256x1024")
    p.add_argument("--csv", action="store_true")
    o = p.parse_args()
    import torch
    if o.threads:
        torch.set_num_threads(o.threads)
    clock = time.thread_time if o.cpu_time else time.perf_counter
    dtype = {"bf16": torch.bfloat16, "f32": torch.float32}[o.dtype]
    print(f"# torch {torch.__version__}, {torch.get_num_threads()} threads, {o.dtype}")
    print("m,n,k,gflops" if o.csv else f"{'m':>6} {'n':>5} {'k':>5} {'GFLOP/s':>9}")
    with torch.inference_mode():
        for m in map(int, o.m.split(",")):
            for n, k in SHAPES:
                if o.shapes and f"{n}x{k}" not in o.shapes.split(","):
                    continue
                x = torch.randn(m, k).to(dtype)
                w = (torch.randn(n, k) / k**0.5).to(dtype)
                calls = 3 if m * n * k > 1e10 else 20
                rounds = []
                for _ in range(o.rounds):
                    torch.nn.functional.linear(x, w)
                    best = float("inf")
                    for _ in range(calls):
                        start = clock()
                        torch.nn.functional.linear(x, w)
                        best = min(best, clock() - start)
                    rounds.append(2e-9 * m * n * k / best)
                g = statistics.median(rounds)
                print(f"{m},{n},{k},{g:.1f}" if o.csv else f"{m:6} {n:5} {k:5} {g:9.1f}", flush=True)


if __name__ == "__main__":
    main()
