#!/usr/bin/env python3
"""Writes tests/data/image/resize.txt: what Pillow's 8-bit resize gives for pictures that the test draws again by rule.

    python3 tools/vectors/image_resize.py        needs numpy and Pillow 12.0 or older

Up to version 12.0 Pillow resamples the columns first, always, and the published models were made with that. 12.3 does the
rows first when the height is over 100 times the width and shrinks, 13.0 for more sizes; that rounds the image in between
differently. The rule followed here is the old one.

A line: PATTERN IN_W IN_H OUT_W OUT_H FILTER FNV1A64(input) FNV1A64(output) [output as hexadecimal, small ones only]
"""
import pathlib

import numpy as np
import PIL
from PIL import Image

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests/data/image/resize.txt"
assert tuple(int(v) for v in PIL.__version__.split(".")[:2]) <= (12, 0), "Pillow 12.0 or older, please"
FILTERS = {"bicubic": Image.Resampling.BICUBIC, "lanczos": Image.Resampling.LANCZOS}


def draw(pattern, w, h):
    """The same integers as draw() in tests/test_image_resize.c."""
    y, x = np.mgrid[0:h, 0:w].astype(np.uint32)
    channels = []
    for c in range(3):
        if pattern == "noise":
            v = x * np.uint32(73856093) ^ y * np.uint32(19349663) ^ np.uint32(c * 83492791)
            v = (v ^ v >> 15) * np.uint32(0x2c1b3c6d)
            v = (v ^ v >> 12) >> 8
        elif pattern == "checker":
            v = ((x ^ y) & 1) * np.uint32(255 - 60 * c)
        elif pattern == "chirp":                                # a sawtooth whose frequency grows with x and y
            v = (x * x * np.uint32(3 + c) + y * y * np.uint32(2)) >> 4
        elif pattern == "strokes":                              # black on white, like text
            v = np.where((x // 3 + y // 5 + c) % 4 == 0, np.uint32(0), np.uint32(255))
        else:                                                   # gradient
            v = x * np.uint32(255) // np.uint32(max(w - 1, 1)) + y * np.uint32(c)
        channels.append((v & 255).astype(np.uint8))
    return np.stack(channels, -1)


def fnv(data):
    h = 0xcbf29ce484222325
    for b in data:
        h = (h ^ b) * 0x100000001b3 & 0xffffffffffffffff
    return h


sizes = [
    (1, 1, 1, 1), (1, 1, 5, 7), (1, 9, 4, 3), (9, 1, 3, 4), (2, 2, 1, 1), (2, 3, 40, 1), (3, 2, 1, 40), (5, 5, 5, 9), (5, 5, 9, 5),
    (7, 4, 3, 9), (8, 8, 4, 4), (17, 11, 6, 4), (4, 4, 9, 9), (16, 16, 8, 32), (15, 33, 14, 31), (31, 17, 33, 16),       # in full
    (100, 60, 37, 22), (100, 60, 260, 156), (64, 48, 128, 96), (128, 96, 128, 40), (128, 96, 50, 96), (199, 3, 28, 28), (3, 199, 56, 28),
    (500, 2, 28, 28), (333, 222, 1, 222), (222, 333, 222, 1), (150, 150, 149, 151), (257, 129, 84, 1512), (300, 200, 112, 84),
    (1000, 700, 364, 252), (640, 480, 28, 28), (4000, 5, 28, 28), (5, 4000, 28, 28),
]
rng = np.random.default_rng(20250)
for _ in range(40):
    sizes.append(tuple(int(v) for v in (*rng.integers(1, 300, 2), *rng.integers(1, 300, 2))))
lines = ["# Pillow " + PIL.__version__]
patterns = ["noise", "checker", "chirp", "strokes", "gradient"]
for i, (w, h, ow, oh) in enumerate(sizes):
    for j, (name, filter_) in enumerate(FILTERS.items()):
        for pattern in patterns if i < 4 else [patterns[(i + j) % 5], patterns[(i + j + 2) % 5]]:
            source = draw(pattern, w, h)
            out = np.asarray(Image.fromarray(source).resize((ow, oh), filter_)).tobytes()
            hexa = " " + out.hex() if len(out) <= 400 else ""
            lines.append("%s %d %d %d %d %s %016x %016x%s" % (pattern, w, h, ow, oh, name, fnv(source.tobytes()), fnv(out), hexa))
OUT.write_text("\n".join(lines) + "\n")
print(len(lines) - 1, "cases,", OUT.stat().st_size, "bytes")
