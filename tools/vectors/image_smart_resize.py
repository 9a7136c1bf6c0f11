#!/usr/bin/env python3
"""Writes tests/data/image/smart_resize.txt: the reference rule for target sizes, in Python's exact integers and floats.

    python3 tools/vectors/image_smart_resize.py

Lines:  size FACTOR MIN MAX WIDTH HEIGHT OUT_WIDTH OUT_HEIGHT     (0 0: refused for its aspect ratio)
        rows FACTOR MIN MAX FIRST LAST HASH   FNV-1a over "OUT_WIDTH OUT_HEIGHT " of every height FIRST..LAST x width 1..400
"""
import math
import pathlib
import random

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests/data/image/smart_resize.txt"


def smart_resize(height, width, factor, min_pixels, max_pixels):
    if height < factor:
        width = round(width * factor / height)
        height = factor
    if width < factor:
        height = round(height * factor / width)
        width = factor
    if max(height, width) / min(height, width) > 200:
        return 0, 0
    h, w = round(height / factor) * factor, round(width / factor) * factor
    if h * w > max_pixels:
        beta = math.sqrt(height * width / max_pixels)
        h = max(factor, math.floor(height / beta / factor) * factor)
        w = max(factor, math.floor(width / beta / factor) * factor)
    elif h * w < min_pixels:
        beta = math.sqrt(min_pixels / (height * width))
        h = math.ceil(height * beta / factor) * factor
        w = math.ceil(width * beta / factor) * factor
    return h, w


def fnv(text):
    h = 0xcbf29ce484222325
    for b in text.encode():
        h = (h ^ b) * 0x100000001b3 & 0xffffffffffffffff
    return h


limits = [(28, 112896, 1003520), (28, 147384, 2822400), (28, 3136, 470400), (28, 112896, 1605632), (28, 784, 15680), (32, 0, 100352)]
lines = []
for f, low, high in limits:
    for first in range(1, 400, 20):
        text = ""
        for height in range(first, first + 20):
            for width in range(1, 401):
                h, w = smart_resize(height, width, f, low, high)
                text += "%d %d " % (w, h)
        lines.append("rows %d %d %d %d %d %016x" % (f, low, high, first, first + 19, fnv(text)))
random.seed(411)
sizes = [(28, 28), (20, 400), (400, 20), (3000, 2000), (42, 42), (70, 70), (31, 639), (639, 31), (27, 257), (1, 1), (1, 5000), (900, 4), (4, 900),
         (5600, 28), (5601, 28), (28, 5600), (28, 5601), (3000, 14), (14, 2800), (14, 2801), (2366, 1402), (10000, 10000), (65500, 65500),
         (65500, 1), (253, 14400), (8000, 8000), (2147483647, 2147483647), (2147483647, 10737419), (1003520, 28), (27, 5399), (27, 5401)]
for _ in range(150):
    sizes.append((int(2 ** random.uniform(0, 16.5)), int(2 ** random.uniform(0, 16.5))))
for _ in range(150):                                            # near halves of the factor and around the limits
    sizes.append((14 * random.randrange(1, 120), 14 * random.randrange(1, 120)))
for f, low, high in limits:
    for width, height in sizes:
        h, w = smart_resize(height, width, f, low, high)
        lines.append("size %d %d %d %d %d %d %d" % (f, low, high, width, height, w, h))
OUT.write_text("\n".join(lines) + "\n")
print(len(lines), "lines,", OUT.stat().st_size, "bytes")
