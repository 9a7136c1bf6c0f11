#!/usr/bin/env python3
"""Writes the picture files of tests/data/image and cases.txt, the list that tests/test_image_decode.c walks.

    python3 tools/vectors/image_fixtures.py      needs numpy, Pillow, tifffile, imagecodecs; cjpeg of libjpeg-turbo

A line of cases.txt: FILE EXPECTED.ppm TOLERANCE, the largest difference of a byte. What is expected of a lossless file is
computed here from the array that went in, never read back with the library that wrote it; JPEG and lossy WebP get the
array that went in with a tolerance, or Pillow's decoding of the same file exactly (Pillow wraps the same libraries).
"""
import io
import pathlib
import struct
import subprocess

import imagecodecs
import numpy as np
import tifffile
from PIL import Image, ImageOps, PngImagePlugin

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests/data/image"
W, H = 37, 23
cases = []


def ppm(name, rgb):
    (OUT / (name + ".ppm")).write_bytes(b"P6\n%d %d\n255\n" % (rgb.shape[1], rgb.shape[0]) + np.ascontiguousarray(rgb).tobytes())


def case(file, expected, tolerance=0, data=None):
    if data is not None:
        (OUT / file).write_bytes(data)
    cases.append("%s %s.ppm %d" % (file, expected, tolerance))


def saved(image, **options):
    b = io.BytesIO()
    image.save(b, **options)
    return b.getvalue()


def pillow_rgb(data):
    return np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB"))


def grey3(a):
    return np.repeat(a[..., None], 3, 2)


def over_white(c, a):
    c, a = c.astype(np.int64), a.astype(np.int64)
    return ((c * a + 255 * (255 - a)) / 255 + 0.5).astype(np.uint8)


# ---- pictures: smooth colours with hard dark strokes, different in every corner ----
y, x = np.mgrid[0:H, 0:W]
rgb = np.stack([x * 255 // (W - 1), y * 255 // (H - 1), (x + 2 * y) * 3 % 256], -1).astype(np.uint8)
rgb[4:6, 3:20] = (10, 20, 30)
rgb[8:19, 8:10] = (200, 0, 10)
smooth = np.stack([x * 5 + 20, y * 8 + 30, 200 - x * 2 - y * 2], -1).astype(np.uint8)
grey = ((x * 4 + y * 5) % 256).astype(np.uint8)
grey[6:8, 2:30] = 0
smooth_grey = (x * 3 + y * 4 + 10).astype(np.uint8)
bits = ((x // 3 + y // 2) % 2 ^ (x > 30)).astype(bool)         # True is white
alpha = (x * 7 % 256).astype(np.uint8)
alpha[:, :4] = 0
alpha[:, -4:] = 255
deep = (x * 1771 + y * 97 + np.arange(3)[:, None, None] * 9001).transpose(1, 2, 0).astype(np.uint16)
deep_grey = (x * 1771 + y * 97).astype(np.uint16)
ppm("rgb", rgb)
ppm("smooth", smooth)
ppm("grey", grey3(grey))
ppm("smooth_grey", grey3(smooth_grey))
ppm("bits", grey3(np.where(bits, 255, 0).astype(np.uint8)))
ppm("over_white", over_white(rgb, alpha[..., None]))
ppm("grey_over_white", grey3(over_white(grey, alpha)))


def round_16(a):                                                # 65535 levels to 255, to nearest
    return ((a.astype(np.int64) * 255 + 32767) // 65535).astype(np.uint8)


ppm("deep", round_16(deep))
ppm("deep_grey", grey3(round_16(deep_grey)))

# ---- PNG, written chunk by chunk so that every type is what it says ----


def chunk(name, body):
    import zlib
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def pack_bits(values, depth):                                   # rows of values to rows of bytes, high bits first
    rows = []
    for row in values.reshape(values.shape[0], -1):
        if depth == 16:
            rows.append(row.astype(">u2").tobytes())
        else:
            b = (row[:, None] >> np.arange(depth - 1, -1, -1) & 1).astype(np.uint8).ravel()
            rows.append(np.packbits(b).tobytes())
    return rows


PASSES = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def png(values, colour, depth, before=b"", interlaced=False):
    import zlib
    h, w = values.shape[:2]
    parts = [values[y0::dy, x0::dx] for x0, y0, dx, dy in PASSES] if interlaced else [values]
    raw = b"".join(b"\0" + row for p in parts if p.size for row in pack_bits(p, depth))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, depth, colour, 0, 0, interlaced)) + before +
            chunk(b"IDAT", zlib.compress(raw, 9)) + chunk(b"IEND", b""))


GREY, RGB, PALETTE, GREY_ALPHA, RGBA = 0, 2, 3, 4, 6
case("rgb8.png", "rgb", 0, png(rgb, RGB, 8))
case("rgb8_interlaced.png", "rgb", 0, png(rgb, RGB, 8, interlaced=True))
case("grey8.png", "grey", 0, png(grey, GREY, 8))
case("rgb16.png", "deep", 0, png(deep, RGB, 16))
case("grey16.png", "deep_grey", 0, png(deep_grey, GREY, 16))
case("twin8_as_16.png", "rgb", 0, png(rgb.astype(np.uint16) * 257, RGB, 16))
case("grey1.png", "bits", 0, png(bits.astype(np.uint8), GREY, 1))
case("grey1_interlaced.png", "bits", 0, png(bits.astype(np.uint8), GREY, 1, interlaced=True))
for depth in 2, 4:
    v = (grey >> 8 - depth)
    ppm("grey%d" % depth, grey3((v * (255 // (2 ** depth - 1))).astype(np.uint8)))
    case("grey%d.png" % depth, "grey%d" % depth, 0, png(v, GREY, depth))
rgba = np.dstack([rgb, alpha])
case("rgba8.png", "over_white", 0, png(rgba, RGBA, 8))
case("rgba8_interlaced.png", "over_white", 0, png(rgba, RGBA, 8, interlaced=True))
case("rgba16.png", "over_white", 0, png(rgba.astype(np.uint16) * 257, RGBA, 16))
case("grey_alpha8.png", "grey_over_white", 0, png(np.dstack([grey, alpha]), GREY_ALPHA, 8))
case("grey_alpha16.png", "grey_over_white", 0, png(np.dstack([grey, alpha]).astype(np.uint16) * 257, GREY_ALPHA, 16))
for depth in 1, 2, 4, 8:
    n = 2 ** depth
    index = ((x + 3 * y) % n).astype(np.uint8)
    table = np.stack([np.arange(n) * 251 // max(n - 1, 1), 255 - np.arange(n) * 97 // max(n - 1, 1), np.arange(n) * 7 % 256], -1).astype(np.uint8)
    ppm("palette%d" % depth, table[index])
    case("palette%d.png" % depth, "palette%d" % depth, 0, png(index, PALETTE, depth, chunk(b"PLTE", table.tobytes())))
    clear = (np.arange(n // 2) * 50 % 256).astype(np.uint8)      # shorter than the palette: the rest is opaque
    full = np.full(n, 255, np.uint8)
    full[:n // 2] = clear
    ppm("palette%d_clear" % depth, over_white(table[index], full[index][..., None]))
    case("palette%d_clear.png" % depth, "palette%d_clear" % depth, 0,
         png(index, PALETTE, depth, chunk(b"PLTE", table.tobytes()) + chunk(b"tRNS", clear.tobytes())))
key = tuple(int(v) for v in rgb[5, 5])
ppm("rgb_key", np.where((rgb == rgb[5, 5]).all(-1, keepdims=True), 255, rgb).astype(np.uint8))
case("rgb8_key.png", "rgb_key", 0, png(rgb, RGB, 8, chunk(b"tRNS", struct.pack(">HHH", *key))))
ppm("grey_key", grey3(np.where(grey == 0, 255, grey).astype(np.uint8)))
case("grey8_key.png", "grey_key", 0, png(grey, GREY, 8, chunk(b"tRNS", struct.pack(">H", 0))))
deep_key = round_16(deep)
deep_key[(deep == deep[3, 3]).all(-1)] = 255
ppm("deep_key", deep_key)
case("rgb16_key.png", "deep_key", 0, png(deep, RGB, 16, chunk(b"tRNS", struct.pack(">HHH", *(int(v) for v in deep[3, 3])))))
case("with_profile_and_text.png", "rgb", 0, png(rgb, RGB, 8, chunk(b"gAMA", struct.pack(">I", 100000)) + chunk(b"tEXt", b"Comment\0x") +
     chunk(b"pHYs", struct.pack(">IIB", 11811, 11811, 1))))
case("one_pixel.png", "one_pixel", 0, png(rgb[5:6, 5:6], RGB, 8))
ppm("one_pixel", rgb[5:6, 5:6])
# text that only transparency shows: black on clear is read, white on clear disappears (composited on white)
mask = np.where(bits, 255, 0).astype(np.uint8)
ppm("white", np.full((H, W, 3), 255, np.uint8))
ppm("black_text", grey3(255 - mask))
case("black_on_clear.png", "black_text", 0, png(np.dstack([np.zeros((H, W, 3), np.uint8), mask]), RGBA, 8))
case("white_on_clear.png", "white", 0, png(np.dstack([np.full((H, W, 3), 255, np.uint8), mask]), RGBA, 8))
half = np.dstack([np.full((H, W, 3), 100, np.uint8), np.full((H, W), 128, np.uint8)])
ppm("half", over_white(half[..., :3], half[..., 3:]))
case("half_clear_grey.png", "half", 0, png(half, RGBA, 8))

# ---- orientation: what is stored so that the upright picture comes out ----


def stored(a, orientation):
    return {1: a, 2: a[:, ::-1], 3: a[::-1, ::-1], 4: a[::-1], 5: a.swapaxes(0, 1), 6: np.rot90(a), 7: a[::-1, ::-1].swapaxes(0, 1),
            8: np.rot90(a, -1)}[orientation].copy()


def exif(value, big=False, kind=3, count=1):
    e = ">" if big else "<"
    number = struct.pack(e + "HH", value, 0) if kind == 3 else struct.pack(e + "I", value)
    return ((b"MM\0*" if big else b"II*\0") + struct.pack(e + "IH", 8, 2) +
            struct.pack(e + "HHI", 0x010f, 2, 4) + b"Cam\0" + struct.pack(e + "HHI", 0x0112, kind, count) + number +
            struct.pack(e + "I", 0))


def jpeg_exif(image_bytes, block):
    body = b"Exif\0\0" + block
    return image_bytes[:2] + b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body + image_bytes[2:]


def jpeg(a, **options):
    return saved(Image.fromarray(a), format="JPEG", **{"quality": 95, "subsampling": 0, **options})


for o in range(1, 9):
    s = stored(smooth, o)
    case("orientation%d.jpg" % o, "smooth", 8, jpeg_exif(jpeg(s), exif(o, big=o % 2 == 0)))
    case("orientation%d.tif" % o, "rgb", 0, saved(Image.fromarray(stored(rgb, o)), format="TIFF", tiffinfo={274: o}))
    case("orientation%d.png" % o, "rgb", 0, png(stored(rgb, o), RGB, 8, chunk(b"eXIf", exif(o))))
case("orientation6.webp", "rgb", 0, saved(Image.fromarray(stored(rgb, 6)), format="WEBP", lossless=True, exif=b"Exif\0\0" + exif(6)))
plain = jpeg(smooth)
ppm("smooth_jpeg", pillow_rgb(plain))
for name, block in {"0": exif(0), "9": exif(9), "long": exif(6, kind=4), "two": exif(6, count=2), "cut": exif(6)[:30],
                    "offset": b"II*\0\xff\xff\xff\xff\0\0", "empty": b"", "noise": bytes(range(200, 240)),
                    "many": b"II*\0\x08\0\0\0\xff\xff" + b"\0" * 20}.items():
    case("exif_broken_%s.jpg" % name, "smooth_jpeg", 0, jpeg_exif(plain, block))
case("orientation_9.tif", "rgb", 0, saved(Image.fromarray(rgb), format="TIFF", tiffinfo={274: 1}).replace(
    struct.pack("<HHIHH", 274, 3, 1, 1, 0), struct.pack("<HHIHH", 274, 3, 1, 9, 0)))

# ---- JPEG ----


def exact(file, data):
    name = file.replace(".", "_")
    ppm(name, pillow_rgb(data))
    case(file, name, 0, data)


case("rgb_444.jpg", "smooth", 8, plain)
exact("rgb_420.jpg", jpeg(rgb, subsampling=2, quality=80))
exact("rgb_422.jpg", jpeg(rgb, subsampling=1, quality=80))
exact("progressive.jpg", jpeg(rgb, progressive=True, quality=85))
exact("restarts.jpg", jpeg(rgb, restart_marker_blocks=2, quality=85))
case("grey.jpg", "smooth_grey", 4, jpeg(smooth_grey))
case("rgb_stored_as_rgb.jpg", "smooth", 4, jpeg(smooth, keep_rgb=True))
exact("arithmetic.jpg", subprocess.run(["cjpeg", "-arithmetic", "-quality", "85"], input=(OUT / "rgb.ppm").read_bytes(), check=True,
                                       capture_output=True).stdout)
case("no_end_marker.jpg", "smooth_jpeg", 0, plain[:-2])
case("bytes_after_end.jpg", "smooth_jpeg", 0, plain + b"trailing bytes")
# Ink values 0..255 with 255 the most: light (255 - c)(255 - k) / 255. Flat quarters keep JPEG's error small.
ink = np.zeros((32, 48, 4), np.uint8)
ink[:16, :16] = (0, 0, 0, 255)                                  # black by black ink
ink[:16, 16:32] = (0, 200, 100, 0)
ink[:16, 32:] = (255, 255, 255, 0)                              # black by three inks
ink[16:, :16] = (90, 0, 0, 60)
ink[16:, 32:] = (0, 0, 255, 128)                                # the rest is paper
i64 = ink.astype(np.int64)
ppm("ink", (((255 - i64[..., :3]) * (255 - i64[..., 3:]) + 127) // 255).astype(np.uint8))


def without(data, marker):                                      # drops the segments of one marker
    out, at = data[:2], 2
    while data[at + 1] != 0xda:
        n = 2 + struct.unpack(">H", data[at + 2:at + 4])[0]
        if data[at + 1] != marker:
            out += data[at:at + n]
        at += n
    return out + data[at:]


adobe = imagecodecs.jpeg8_encode(255 - ink, level=95, colorspace="CMYK", outcolorspace="CMYK")
ramp = np.zeros((32, 48, 4), np.uint8)                          # YCCK comes subsampled, so without edges between colours
ramp[..., 3] = np.arange(48) * 255 // 47
ramp[..., :3] = np.arange(32)[:, None, None] * np.array([2, 5, 7])
i64 = ramp.astype(np.int64)
ppm("ink_ramp", (((255 - i64[..., :3]) * (255 - i64[..., 3:]) + 127) // 255).astype(np.uint8))
ycck = imagecodecs.jpeg8_encode(255 - ramp, level=98, colorspace="CMYK", outcolorspace="YCCK")
bare = without(imagecodecs.jpeg8_encode(ink, level=95, colorspace="CMYK", outcolorspace="CMYK"), 0xee)
assert b"Adobe" in adobe and b"Adobe" in ycck and b"Adobe" not in bare
case("cmyk_adobe.jpg", "ink", 4, adobe)
case("ycck_adobe.jpg", "ink_ramp", 6, ycck)
case("cmyk_bare.jpg", "ink", 4, bare)
exact("cmyk_pillow.jpg", saved(Image.fromarray(ink, "CMYK"), format="JPEG", quality=90))

# ---- WebP ----
case("lossless.webp", "rgb", 0, saved(Image.fromarray(rgb), format="WEBP", lossless=True))
case("lossless_alpha.webp", "over_white", 0, saved(Image.fromarray(rgba), format="WEBP", lossless=True, exact=True))
exact("lossy.webp", saved(Image.fromarray(rgb), format="WEBP", quality=80))
data = saved(Image.fromarray(rgba), format="WEBP", quality=80)
im = np.asarray(Image.open(io.BytesIO(data)).convert("RGBA"))
ppm("lossy_alpha_webp", over_white(im[..., :3], im[..., 3:]))
case("lossy_alpha.webp", "lossy_alpha_webp", 0, data)

# ---- TIFF ----


def tiff(a, **options):
    b = io.BytesIO()
    tifffile.imwrite(b, a, metadata=None, software=False, **{"photometric": "rgb", **options})
    return b.getvalue()


def patched(data, tag, old, new):                               # a SHORT tag of a little-endian file
    before, after = struct.pack("<HHIHH", tag, 3, 1, old, 0), struct.pack("<HHIHH", tag, 3, 1, new, 0)
    assert data.count(before) == 1
    return data.replace(before, after)


case("rgb8.tif", "rgb", 0, tiff(rgb))
case("rgb8_lzw_predictor.tif", "rgb", 0, tiff(rgb, compression="lzw", predictor=True, rowsperstrip=5))
case("rgb8_deflate_tiles.tif", "rgb", 0, tiff(rgb, compression="deflate", tile=(16, 16)))
case("rgb8_separate.tif", "rgb", 0, tiff(np.ascontiguousarray(rgb.transpose(2, 0, 1)), planarconfig="separate"))
case("rgb8_packbits.tif", "rgb", 0, tiff(rgb, compression="packbits"))
case("rgb8_big_endian.tif", "rgb", 0, tiff(rgb, byteorder=">"))
case("rgb8_bigtiff.tif", "rgb", 0, tiff(rgb, bigtiff=True))
case("rgb16.tif", "deep", 0, tiff(deep, rowsperstrip=7))
case("rgb16_big_endian.tif", "deep", 0, tiff(deep, byteorder=">"))
# libtiff's RGBA reader keeps the high byte of 16-bit grey
ppm("deep_grey_high", grey3((deep_grey >> 8).astype(np.uint8)))
case("grey16.tif", "deep_grey_high", 0, tiff(deep_grey, photometric="minisblack"))
case("grey16_big_endian.tif", "deep_grey_high", 0, tiff(deep_grey, photometric="minisblack", byteorder=">"))
case("twin8_as_16.tif", "rgb", 0, tiff(rgb.astype(np.uint16) * 257))
case("grey_twin8_as_16.tif", "grey", 0, tiff(grey.astype(np.uint16) * 257, photometric="minisblack"))
case("grey8.tif", "grey", 0, tiff(grey, photometric="minisblack"))
case("grey8_white_is_zero.tif", "grey", 0, tiff(255 - grey, photometric="miniswhite"))
one_bit = Image.fromarray(bits)
g4 = saved(one_bit, format="TIFF", compression="group4")
case("g4_black_is_zero.tif", "bits", 0, g4)
inverted = saved(Image.fromarray(~bits), format="TIFF", compression="group4")
case("g4_white_is_zero.tif", "bits", 0, patched(inverted, 262, 1, 0))
case("g3.tif", "bits", 0, saved(one_bit, format="TIFF", compression="group3"))
case("bilevel_raw.tif", "bits", 0, saved(one_bit, format="TIFF"))
case("palette8.tif", "palette8", 0, tiff(((x + 3 * y) % 256).astype(np.uint8), photometric="palette", colormap=(
    np.stack([np.arange(256) * 251 // 255, 255 - np.arange(256) * 97 // 255, np.arange(256) * 7 % 256]) * 257).astype(np.uint16)))
case("rgba8.tif", "over_white", 1, tiff(rgba, extrasamples=["unassalpha"]))
multiplied = np.dstack([(rgb.astype(np.int64) * alpha[..., None] + 127) // 255, alpha]).astype(np.uint8)
case("rgba8_multiplied.tif", "over_white", 1, tiff(multiplied, extrasamples=["assocalpha"]))
case("rgb8_extra.tif", "rgb", 0, tiff(np.dstack([rgb, grey]), extrasamples=["unspecified"]))
case("grey_alpha8.tif", "grey_over_white", 1, tiff(np.dstack([grey, alpha]), photometric="minisblack", extrasamples=["unassalpha"],
                                                     planarconfig="contig"))
case("cmyk8.tif", "ink", 1, tiff(ink, photometric="separated"))
for mode in "RGB", "YCbCr":
    case("jpeg_in_tiff_%s.tif" % mode.lower(), "smooth", 10,
         saved(Image.fromarray(smooth).convert(mode), format="TIFF", compression="jpeg", quality=95))
b = io.BytesIO()
with tifffile.TiffWriter(b) as t:                               # three pages of different kinds and sizes
    t.write(grey, photometric="minisblack", metadata=None)
    t.write(rgb[:10], photometric="rgb", compression="lzw", metadata=None)
    t.write(bits[:7], photometric="minisblack", metadata=None)
case("three_pages.tif", "grey", 0, b.getvalue())

# ---- names that lie ----
case("png_inside.jpg", "rgb", 0, png(rgb, RGB, 8))
case("jpeg_inside.png", "smooth_jpeg", 0, plain)
case("tiff_inside.webp", "rgb", 0, tiff(rgb))
case("no_name", "rgb", 0, png(rgb, RGB, 8))

# ---- what is refused by name ----
saved_gif = saved(Image.fromarray(rgb), format="GIF")
(OUT / "gif_inside.jpg").write_bytes(saved_gif)
(OUT / "picture.bmp").write_bytes(saved(Image.fromarray(rgb), format="BMP"))
frames = [Image.fromarray(rgb), Image.fromarray(smooth)]
(OUT / "animated.webp").write_bytes(saved(frames[0], format="WEBP", save_all=True, append_images=frames[1:], lossless=True))

(OUT / "cases.txt").write_text("\n".join(cases) + "\n")
print(len(cases), "cases,", sum(f.stat().st_size for f in OUT.iterdir()) // 1024, "KiB")
