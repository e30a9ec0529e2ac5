#!/usr/bin/env python3
"""Prints what Pillow makes of the test picture, as recorded in resize_test.cpp. Needs pillow, numpy."""

import zlib

import numpy
import PIL
from PIL import Image


def picture(width, height, channels):
    y, x, c = numpy.mgrid[0:height, 0:width, 0:channels]
    return ((x * 7 + y * 13 + c * 31 + x * y % 11 * 5) % 256).astype(numpy.uint8)


CASES = [  # such that Pillow 13 resizes across first; width, height, channels, box, new width, new height
    (41, 29, 3, (0, 0, 41, 29), 16, 12),
    (41, 29, 3, (3.25, 1.5, 30.75, 28), 16, 16),
    (41, 29, 3, (0, 0, 41, 29), 60, 40),
    (41, 29, 3, (0, 0, 41, 29), 16, 40),
    (64, 64, 1, (0, 0, 64, 64), 7, 9),
    (20, 10, 3, (0, 0, 20, 10), 20, 10),
]

print(f"// Pillow {PIL.__version__}")
for width, height, channels, box, new_width, new_height in CASES:
    pixels = picture(width, height, channels)
    image = Image.fromarray(pixels[:, :, 0] if channels == 1 else pixels)
    out = numpy.asarray(image.resize((new_width, new_height), Image.Resampling.BILINEAR, box=box))
    print(f"{{{width}, {height}, {channels}, "
          f"{{{box[0]}, {box[1]}, {box[2] - box[0]}, {box[3] - box[1]}}}, {new_width}, {new_height}, "
          f"0x{zlib.crc32(out.tobytes()):08x}U}},")
