#!/usr/bin/env python3
"""The peer of troupe_decode_benchmark: JPEGs in memory to normalised training pictures of 224 x 224, by
torchvision on Pillow, one thread.

Usage: torch_decode.py FOLDER, as pictures_peer.answer says: pictures per second.
"""

import io
import pathlib
import sys

import torch
from PIL import Image
from torchvision import transforms

import pictures_peer


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    files = [path.read_bytes() for path in sorted(pathlib.Path(sys.argv[1]).rglob("*.jpg"))]
    transform = transforms.Compose([
        transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
        transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])

    def step():
        torch.stack([transform(Image.open(io.BytesIO(data)).convert("RGB")) for data in files])

    pictures_peer.answer(step, len(files))


if __name__ == "__main__":
    main()
