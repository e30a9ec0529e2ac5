#!/usr/bin/env python3
"""Writes the pictures that both sides of `tests/benchmarks/run supervised` read: make_pictures.py FOLDER.

small/train, small/val: JPEGs of 28 x 28, one folder a class; large: JPEGs of 500 x 375, about as large as
ImageNet's; idx: the four files of a set of MNIST's kind. Clouds of a colour by class, with noise over
them, so that the files are about as hard to decode as photographs. The same every time.
"""

import pathlib
import struct
import sys

import numpy
from PIL import Image

CLASSES, TRAIN, EVALUATE, LARGE = 10, 4000, 100, 48


def cloud(random, width, height, label, channels):
    """Bytes [height, width, channels]: light and dark patches of three sizes, and noise."""
    total = numpy.zeros((height, width, channels))
    for cells, strength in ((4, 60), (16, 30), (64, 12)):
        patches = random.normal(0, strength, (cells, cells, channels))
        for c in range(channels):
            smooth = Image.fromarray(patches[:, :, c].astype(numpy.float32))
            total[:, :, c] += numpy.asarray(smooth.resize((width, height), Image.BICUBIC))
    colour = numpy.random.default_rng(label).uniform(64, 192, channels)
    total += colour + random.normal(0, 6, (height, width, channels))
    return total.clip(0, 255).astype(numpy.uint8)


def write_folder(folder, random, count, width, height):
    for index in range(count):
        label = index % CLASSES
        path = folder / f"class{label}"
        path.mkdir(parents=True, exist_ok=True)
        picture = Image.fromarray(cloud(random, width, height, label, 3))
        picture.save(path / f"{index:05}.jpg", quality=90)


def write_idx(folder, random, name, count):
    folder.mkdir(parents=True, exist_ok=True)
    labels = numpy.arange(count, dtype=numpy.uint8) % CLASSES
    pictures = b"".join(cloud(random, 28, 28, int(label), 1).tobytes() for label in labels)
    (folder / f"{name}-images-idx3-ubyte").write_bytes(
        struct.pack(">IIII", 0x803, count, 28, 28) + pictures)
    (folder / f"{name}-labels-idx1-ubyte").write_bytes(
        struct.pack(">II", 0x801, count) + labels.tobytes())


def main():
    folder, random = pathlib.Path(sys.argv[1]), numpy.random.default_rng(1)
    write_folder(folder / "small" / "train", random, TRAIN, 28, 28)
    write_folder(folder / "small" / "val", random, EVALUATE, 28, 28)
    write_folder(folder / "large", random, LARGE, 500, 375)
    write_idx(folder / "idx", random, "train", TRAIN)
    write_idx(folder / "idx", random, "t10k", EVALUATE)


if __name__ == "__main__":
    main()
