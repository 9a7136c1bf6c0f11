#!/usr/bin/env python3
"""Vectors of PaddleX's text post-processing, for tests/test_text_*.c.

    pip download --no-deps paddlex==3.7.2 && pip install pydantic
    python tools/vectors/postprocess.py paddlex-3.7.2-py3-none-any.whl

Runs the functions of the package itself (taken out of paddlex/inference/pipelines/paddleocr_vl/uilts.py without importing
the rest) on random inputs and writes tests/data/text/postprocess.vectors, one JSON value a line:

    ["otsl", text, html]                       no overlapping spans, no <fcel> without content (documented differences)
    ["repeat", [[unit, copies]…], min, bytes, hash]   length and FNV-1a hash of the text kept
    ["spot", text, width, height, result, [[x, y]…×4]…, [text…]]
    ["math", text, result]
"""
import ast
import collections
import html
import itertools
import json
import os
import random
import re
import sys
import zipfile
from typing import Any, Dict, List, Tuple, Union

from pydantic import BaseModel, computed_field, model_validator

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "data", "text", "postprocess.vectors")
NAMES = {"TableCell", "TableData", "otsl_extract_tokens_and_text", "otsl_parse_texts", "export_to_html", "otsl_pad_to_sqr_v2",
         "convert_otsl_to_html", "find_shortest_repeating_substring", "find_repeating_suffix", "truncate_repetitive_content",
         "post_process_for_spotting"}


def load_reference(wheel):
    source = zipfile.ZipFile(wheel).read("paddlex/inference/pipelines/paddleocr_vl/uilts.py").decode()
    keep = []
    for node in ast.parse(source).body:
        constant = isinstance(node, ast.Assign) and re.fullmatch(r"OTSL_\w+|NON_CAPTURING\w+|\w+_RE", node.targets[0].id)
        if constant or getattr(node, "name", None) in NAMES:
            keep.append(node)
    space = dict(re=re, html=html, itertools=itertools, Counter=collections.Counter, BaseModel=BaseModel,
                 computed_field=computed_field, model_validator=model_validator, Any=Any, Dict=Dict, List=List, Tuple=Tuple,
                 Union=Union)
    exec(compile(ast.Module(body=keep, type_ignores=[]), "uilts.py", "exec"), space)
    return space


# ---- tables ----

TEXTS = ["a", "12", " x ", "x < 3 & y > 2", "<a b=\"1\"/>", "</td>", "it's", "é", "表 格", "line\nline", "$ 5", "|", "<fce", "l>", "\t\n ", "[F1]"]


def well_formed_table(rng):
    """A grid cut into rectangles."""
    rows, cols = rng.randint(1, 6), rng.randint(1, 6)
    grid = [[None] * cols for _ in range(rows)]
    for r in range(rows):
        for c in range(cols):
            if grid[r][c]:
                continue
            h, w = (rng.randint(1, 3), rng.randint(1, 3)) if rng.random() < 0.3 else (1, 1)
            h, w = min(h, rows - r), min(w, cols - c)
            while any(grid[r][c + k] for k in range(w)):
                w -= 1
            for i in range(h):
                for k in range(w):
                    grid[r + i][c + k] = "<xcel>" if i and k else "<ucel>" if i else "<lcel>"
            grid[r][c] = "<ecel>" if rng.random() < 0.2 else "<fcel>" + (rng.choice(TEXTS).strip() or "t")
    return "<nl>".join("".join(row) for row in grid) + "<nl>"


def damage(rng, text):
    """Drops, doubles or changes a few tags."""
    parts = re.split(r"(<(?:[felux]cel|nl)>)", text)
    for _ in range(rng.randint(1, 3)):
        i = rng.randrange(len(parts))
        what = rng.random()
        if what < 0.4:
            parts[i] = ""
        elif what < 0.6:
            parts[i] *= 2
        else:
            parts[i] = rng.choice(("<ecel>", "<lcel>", "<ucel>", "<xcel>", "<nl>", "<nl><nl>", "<fcel>new"))
    return "".join(parts)


def noise_table(rng):
    tag = lambda: rng.choice(("<fcel>" + (rng.choice(TEXTS).strip() or "q"), "<ecel>", "<ecel>", "<lcel>", "<ucel>", "<xcel>", "<nl>", "<nl>"))
    stray = lambda: rng.choice(TEXTS) if rng.random() < 0.15 else ""
    return "".join(tag() + stray() for _ in range(rng.randint(1, 18)))


def comparable(ref, text):
    squared = ref["otsl_pad_to_sqr_v2"](text)
    tokens, mixed = ref["otsl_extract_tokens_and_text"](squared)
    if re.search(r"<fcel>\s*(<(?:[felux]cel|nl)>|$)", squared) or (mixed and not mixed[0].startswith("<")):
        return False
    used = set()
    for cell in ref["otsl_parse_texts"](mixed, tokens)[0]:
        for r in range(cell.start_row_offset_idx, cell.end_row_offset_idx):
            for c in range(cell.start_col_offset_idx, cell.end_col_offset_idx):
                if (r, c) in used:
                    return False
                used.add((r, c))
    return True


def tables(rng, ref):
    wanted = {well_formed_table: 120, lambda r: damage(r, well_formed_table(r)): 140, noise_table: 120}
    for make, count in wanted.items():
        while count:
            text = make(rng)
            if comparable(ref, text):
                yield ["otsl", text, ref["convert_otsl_to_html"](text)]
                count -= 1


# ---- repetition ----

def fnv(data):
    h = 0xCBF29CE484222325
    for b in data:
        h = (h ^ b) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return "%016x" % h


def repetitions(rng, ref):
    alphabet = ["a", "b", " ", "é", "字", "0", "😀", "."]
    word = lambda n: "".join(rng.choice(alphabet) for _ in range(n))
    for _ in range(420):
        parts = []
        style = rng.randrange(4)
        if style == 0:  # something, then copies of a unit
            parts = [[word(rng.choice((0, 3, 20, 60, 120))), 1], [word(rng.choice((1, 7, 8, 9, 12, 30))), rng.choice((3, 4, 5, 6, 12, 20))]]
        elif style == 1:  # copies only, near the limits
            parts = [[word(rng.choice((1, 2, 5, 6, 10, 11))), rng.choice((5, 9, 10, 11, 50))], [word(rng.randint(0, 1)), 1]]
        elif style == 2:  # lines
            same, other = word(5) + "x\n", rng.choice(("y\n", "\n", " z \n"))
            parts = [[other, rng.randint(0, 3)], [same, rng.choice((8, 9, 10, 11, 16, 40))], [other, rng.choice((0, 1, 2, 4, 10))]]
        else:  # nested periods
            unit = word(rng.randint(1, 4)) * rng.randint(1, 6) + word(1)
            parts = [[word(rng.randint(0, 10)), 1], [unit, rng.randint(4, 30)]]
        for pad in range(rng.randint(0, 1)):
            parts = [[" \n ", 1]] + parts + [["\x1f ", 1]]
        text = "".join(unit * n for unit, n in parts)
        low = rng.choice((0, 50, 50, max(len(text) - 1, 0), len(text), len(text) + 1))
        kept = ref["truncate_repetitive_content"](text, min_count=low).encode()
        yield ["repeat", parts, low, len(kept), fnv(kept)]


# ---- spotting and mathematics ----

def spottings(rng, ref):
    for _ in range(80):
        pieces = []
        for _ in range(rng.randint(0, 4)):
            n = rng.choice((8, 8, 8, 7, 9, 4, 0))
            locs = rng.choice(("", " ", "")).join("<|LOC_%s|>" % rng.choice((rng.randint(0, 1000), rng.randint(0, 1000), "007", "x")) for _ in range(n))
            text = rng.choice((" Total ", "a\nb", "", "表", "<|LOC_5|>", "1 < 2"))
            style = rng.randrange(4)
            if style < 2:
                pieces += ["<|TEXT_START|>%s<|TEXT_END|>" % text, "<|LOC_BEGIN|>%s<|LOC_END|>" % locs]
            elif style == 2:
                pieces += [text, locs]
            else:
                pieces += [rng.choice(("<|TEXT_START|>", "<|LOC_END|>", "<|LOC_BEGIN|>", "<|TEXT_END|>", "<|LOC_", "<|LOC_1"))]
        text = "".join(pieces)
        w, h = rng.randint(1, 3000), rng.randint(1, 3000)
        result, found = ref["post_process_for_spotting"](text, w, h)
        yield ["spot", text, w, h, result, found["rec_polys"], found["rec_texts"]]


def formulas(rng):
    pool = ["\\(", "\\)", "\\[", "\\]", "\\[\\[", "\\]\\]", "$", "$$", "x_1", " ", "\\alpha", "\n", "5", "\\\\", "é"]
    for _ in range(120):
        text = "".join(rng.choice(pool) for _ in range(rng.randint(0, 10)))
        result = text
        if ("\\(" in text and "\\)" in text) or ("\\[" in text and "\\]" in text):
            result = result.replace("$", "")
            for old, new in (("\\(", " $ "), ("\\)", " $"), ("\\[\\[", "\\["), ("\\]\\]", "\\]"), ("\\[", " $$ "), ("\\]", " $$ ")):
                result = result.replace(old, new)
        yield ["math", text, result]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    ref, rng = load_reference(sys.argv[1]), random.Random(20240602)
    with open(OUT, "w", encoding="utf-8") as f:
        for line in itertools.chain(tables(rng, ref), repetitions(rng, ref), spottings(rng, ref), formulas(rng)):
            f.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
