#!/usr/bin/env python3
"""Tokenizer vectors from the Hugging Face `tokenizers` library, for tests/test_tokenizer.c.

    pip install tokenizers safetensors numpy
    python tools/vectors/tokenizer.py

Writes into tests/data/text/: three small synthetic tokenizers (synthetic_*.json) that exercise what the real ones do not
(flags of added tokens, Metaspace, merges as arrays, ignore_merges, unknown tokens), one vector file for each tokenizer
(*.vectors: one JSON value a line) and prompt.json, the input ids of the golden samples. Lines of a vector file:

    ["e", text, ids]        encoding with every added token found
    ["s", text, ids]        encoding with encode_special_tokens=True (special tokens in the text stay text)
    ["d", ids, text]        decoding with special tokens kept
    ["k", ids, text]        decoding with special tokens skipped
    ["v", first, [text…]]   decoding of each id first, first + 1, … alone
"""
import json
import os
import random
import struct

from tokenizers import Tokenizer

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
OUT = os.path.join(ROOT, "tests", "data", "text")
MINI = os.path.join(ROOT, "models", "mini")


def write_lines(name, lines):
    with open(os.path.join(OUT, name), "w", encoding="utf-8") as f:
        for line in lines:
            f.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")


def vectors(tok, texts, sequences):
    specials = [t.content for t in tok.get_added_tokens_decoder().values() if t.special]
    ignore_merges = json.loads(tok.to_str())["model"]["ignore_merges"]
    for text in texts:
        tok.encode_special_tokens = False
        yield ["e", text, tok.encode(text, add_special_tokens=False).ids]
        # With ignore_merges the reference lets a special token of the model's vocabulary through when it is a whole
        # word; ours never does.
        if any(s.strip() in text for s in specials) and not (ignore_merges and "<unk>" in text):
            tok.encode_special_tokens = True
            yield ["s", text, tok.encode(text, add_special_tokens=False).ids]
    for ids in sequences:
        kept, skipped = tok.decode(ids, skip_special_tokens=False), tok.decode(ids, skip_special_tokens=True)
        yield ["d", ids, kept]
        if skipped != kept:
            yield ["k", ids, skipped]
    size = tok.get_vocab_size()
    for first in range(0, size, 64):
        yield ["v", first, [tok.decode([i], skip_special_tokens=False) for i in range(first, min(first + 64, size))]]


# ---- strings ----

WORDS = ("the of and to in that was his he it with is for as had you not be her on at by which have or from this him but all "
         "she they were my are me one their so an said them we who would been will no when there if more out up into do any "
         "Recognition OCR Table Spotting 2024 3.14 1,000 https://example.org/a?b=c&d=e name@mail.test").split()
LATIN = "àâäæçéèêëîïôœùûüÿñßøåÅÉÈÖÜÑ¿¡«»–—’‘“”…€£§°±²³µ"
CJK = "東京都日本語文字認識的一是在不了有和人这中大为上个国我以要他한국어のがにはをとアイウエオ，。「」"
EMOJI = ["😀", "👍🏽", "👨‍👩‍👧", "🇫🇷", "❤️", "🏴󠁧󠁢󠁥󠁮󠁧󠁿"]
CONTROL = ["\x00", "\x01", "\x07", "\x0b", "\x1b", "\x7f", "\x85", "\xa0", "\u2028", "\ufeff", "\u200d", "\ufffd", "\u2581"]
SPACE = [" ", "  ", "   ", "\t", "\n", "\r\n", "\n\n", " \n "]
OTHER = ["Ελληνικά", "Русский", "עברית", "العربية", "हिन्दी", "ไทย", "\U0001F600", "\U0010FFFF", "\u0301e", "é", "ﬁ", "Å", "①"]


def mini_texts(rng, specials):
    fixed = ["", " ", "  ", "\n", "\t", "OCR:", "Table Recognition:", "Formula Recognition:", "Chart Recognition:", "Spotting:",
             "Seal Recognition:", "User: ", "\nAssistant: ", "OCR:\nAssistant: ", "User: OCR:\nAssistant: ", " leading",
             "trailing ", "a  b   c    d", "▁", " ▁ ", "<0x0A>", "<0x41>", "x < 3 & y > 2", "a" * 300, "ab" * 150,
             " " * 100, "\n" * 40, "0123456789" * 10]
    yield from fixed
    for s in specials:
        yield from (s, "a" + s + "b", " " + s + " ", s + s, s[:-1], s[1:], "<" + s, s.lower())
    for _ in range(450):
        yield "".join(rng.choice((" ", "", "\n")) + rng.choice(WORDS) for _ in range(rng.randint(1, 10)))
    pools = [list(LATIN), list(CJK), EMOJI, CONTROL, SPACE, OTHER, WORDS, specials, list("abcdeinorst "), list("!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~")]
    for _ in range(850):
        chosen = rng.sample(pools, rng.randint(1, 3))
        yield "".join(rng.choice(rng.choice(chosen)) for _ in range(rng.randint(1, 14)))


def random_sequences(rng, size, count, byte_ids):
    for _ in range(count):
        n = rng.choice((2, 2, 3, 5, 9))
        yield [rng.randrange(size) if rng.random() < 0.6 or not byte_ids else rng.choice(byte_ids) for _ in range(n)]


def byte_sequences(rng, tok, count):
    """Runs of byte tokens, whole characters and broken ones, between ordinary pieces."""
    ids = [tok.token_to_id("<0x%02X>" % b) for b in range(256)]
    pieces = [i for i in range(tok.get_vocab_size()) if i not in ids]
    for _ in range(count):
        out = []
        for _ in range(rng.randint(1, 4)):
            raw = "".join(rng.choice(EMOJI + list(LATIN) + list(CJK) + ["\n", "a"]) for _ in range(rng.randint(1, 2))).encode()
            if rng.random() < 0.4:
                raw = raw[:rng.randint(0, len(raw))]
            if rng.random() < 0.2:
                raw = raw[rng.randint(0, len(raw)):]
            out += [ids[b] for b in raw]
            if rng.random() < 0.7:
                out.append(rng.choice(pieces))
        yield out


# ---- synthetic tokenizers ----

def added(i, content, **flags):
    token = {"id": i, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
             "special": False}
    token.update(flags)
    return token


def grow(rng, vocab, singles, count):
    """Random merges over the pieces so far."""
    pieces, merges = list(singles), []
    while len(merges) < count:
        a, b = rng.choice(pieces), rng.choice(pieces)
        if len(a + b) <= 6 and (a, b) not in merges and (a + b not in vocab or rng.random() < 0.3):
            if a + b not in vocab:
                vocab[a + b] = len(vocab)
                pieces.append(a + b)
            merges.append((a, b))
    return merges


def model(vocab, merges, **options):
    m = {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None, "end_of_word_suffix": None,
         "fuse_unk": True, "byte_fallback": True, "ignore_merges": False, "vocab": vocab, "merges": merges}
    m.update(options)
    return m


def tokenizer(**sections):
    t = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "pre_tokenizer": None,
         "post_processor": None, "decoder": None}
    t.update(sections)
    return t


def synthetic_llama(rng):
    """A prepended mark, byte tokens with holes (unknown tokens between byte runs), merges as arrays, Strip of one space."""
    vocab = {"<unk>": 0, "<s>": 1, "</s>": 2}
    for b in list(range(0, 0x40)) + list(range(0x80, 0xC8)) + list(range(0xE0, 0xE4)):
        vocab["<0x%02X>" % b] = len(vocab)
    for c in "▁abcdeé語":
        vocab[c] = len(vocab)
    merges = grow(rng, vocab, "▁abcdeé", 60)
    n = len(vocab)
    return tokenizer(
        added_tokens=[added(0, "<unk>", special=True), added(1, "<s>", special=True), added(2, "</s>", special=True),
                      added(n, "<tag>"), added(n + 1, "<tag>x"), added(n + 2, "b c", normalized=True),
                      added(n + 3, " dd", normalized=False), added(n + 4, "語語", normalized=True)],
        normalizer={"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"},
                                                        {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
        decoder={"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
        model=model(vocab, [list(m) for m in merges]))


def synthetic_metaspace(rng):
    """Metaspace "first", NFKC, flags of added tokens, ignore_merges, no byte fallback, unknown tokens not fused."""
    vocab = {"<unk>": 0}
    for c in "▁abcdefi-1é":
        vocab[c] = len(vocab)
    merges = grow(rng, vocab, "▁abcdefi", 50)
    for whole in ("▁abc-de", "fade", "▁1-1"):
        vocab[whole] = len(vocab)
    n = len(vocab)
    return tokenizer(
        added_tokens=[added(0, "<unk>", special=True), added(n, "<l>", lstrip=True, special=True),
                      added(n + 1, "<r>", rstrip=True), added(n + 2, "<b>", lstrip=True, rstrip=True, special=True),
                      added(n + 3, "ab", single_word=True), added(n + 4, "fi", normalized=True),
                      added(n + 5, "ﬁd", normalized=True), added(n + 6, "<w>", single_word=True, lstrip=True, special=True),
                      added(n + 7, "- -", rstrip=True, normalized=True)],
        normalizer={"type": "NFKC"},
        pre_tokenizer={"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True},
        decoder={"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True},
        post_processor={"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}],
                        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
                        "special_tokens": {}},
        model=model(vocab, ["%s %s" % m for m in merges], fuse_unk=False, byte_fallback=False, ignore_merges=True))


def synthetic_whole(rng):
    """Metaspace "always" without splitting, NFC, no unknown token, no decoder."""
    vocab = {}
    for c in "▁abcé\n":
        vocab[c] = len(vocab)
    for b in range(256):
        vocab["<0x%02X>" % b] = len(vocab)
    merges = grow(rng, vocab, "▁abcé", 40)
    n = len(vocab)
    return tokenizer(
        added_tokens=[added(n, "<x>", special=True), added(n + 1, "<|x|>", special=True, normalized=True),
                      added(n + 2, "e\u0301e", normalized=True)],
        normalizer={"type": "Sequence", "normalizers": [{"type": "NFC"}]},
        pre_tokenizer={"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": False},
        model=model(vocab, [list(m) for m in merges], unk_token=None, fuse_unk=False))


def synthetic_texts(rng, tok):
    tokens = [t.content for t in tok.get_added_tokens_decoder().values()]
    pool = list("abcdef") * 3 + [" ", "  ", "\n", "\t", "\u3000", "é", "e\u0301", "ﬁ", "語", "-", "1", "_", "\u0301", "ⓐ", "\u200d", "😀",
                                 "ÿ", "z", "▁", "①", "Ã", "\u07ff"] + tokens * 2
    for _ in range(300):
        yield "".join(rng.choice(pool) for _ in range(rng.randint(1, 12)))
    yield "".join(rng.choice("abc") for _ in range(2000))


# ---- golden prompts ----

def read_input_ids(path):
    """The input_ids tensor of a safetensors file."""
    with open(path, "rb") as f:
        length = struct.unpack("<Q", f.read(8))[0]
        t = json.loads(f.read(length))["input_ids"]
        f.seek(8 + length + t["data_offsets"][0])
        raw = f.read(t["data_offsets"][1] - t["data_offsets"][0])
    size, code = {"I64": (8, "q"), "I32": (4, "i")}[t["dtype"]]
    return list(struct.unpack("<%d%s" % (len(raw) // size, code), raw))


def golden_prompts():
    samples = {s["file"]: s for s in json.load(open(os.path.join(MINI, "golden", "samples.json")))}
    for name in ("01", "05", "10"):
        grid = samples[name + ".png"]["grid"]
        yield {"sample": name, "task": samples[name + ".png"]["prompt"], "image_tokens": grid[1] * grid[2] // 4,
               "ids": read_input_ids(os.path.join(MINI, "golden", name + ".fp32.safetensors"))}


def main():
    rng = random.Random(20240601)
    tok = Tokenizer.from_file(os.path.join(MINI, "tokenizer.json"))
    specials = [t.content for t in tok.get_added_tokens_decoder().values()]
    byte_ids = [tok.token_to_id("<0x%02X>" % b) for b in range(256)]
    sequences = list(random_sequences(rng, tok.get_vocab_size(), 700, byte_ids)) + list(byte_sequences(rng, tok, 300))
    write_lines("mini.vectors", vectors(tok, mini_texts(rng, specials), sequences))
    for name, build in (("llama", synthetic_llama), ("metaspace", synthetic_metaspace), ("whole", synthetic_whole)):
        path = os.path.join(OUT, "synthetic_%s.json" % name)
        with open(path, "w", encoding="utf-8") as f:
            json.dump(build(rng), f, ensure_ascii=False, separators=(",", ":"))
            f.write("\n")
        tok = Tokenizer.from_file(path)
        byte_ids = [i for i in (tok.token_to_id("<0x%02X>" % b) for b in range(256)) if i is not None]
        write_lines("synthetic_%s.vectors" % name,
                    vectors(tok, list(synthetic_texts(rng, tok)), random_sequences(rng, tok.get_vocab_size(), 200, byte_ids)))
    with open(os.path.join(OUT, "prompt.json"), "w", encoding="utf-8") as f:
        json.dump(list(golden_prompts()), f, separators=(",", ":"))
        f.write("\n")


if __name__ == "__main__":
    main()
