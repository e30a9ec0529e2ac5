"""What the peers that train and decode share: reading, batches without end, and answers on request."""

import argparse
import json
import struct
import sys
import time

import numpy
import torch
from PIL import Image

WARM_STEPS = 3


def training_arguments(doc):
    """Of a peer that trains: folder, workers, threads; LibTorch is set up by them."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    return arguments


def answer(step, items=1):
    """Prints "ready" after its warm-up; then each line "SECONDS" on the input is answered by one JSON
    line with the rate, steps times `items` per second, measured over that time."""
    for _ in range(WARM_STEPS):
        step()
    print("ready", flush=True)
    for line in sys.stdin:
        step()    # what has waited since the last time is not measured
        seconds, count, start = float(line), 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            step()
            count += 1
        print(json.dumps({"rate": items * count / (time.perf_counter() - start)}), flush=True)


class Idx(torch.utils.data.Dataset):
    """Grey pictures of an idx file, as PIL images through `transform`, with their labels."""

    def __init__(self, folder, transform):
        with open(f"{folder}/train-images-idx3-ubyte", "rb") as file:
            _, count, height, width = struct.unpack(">IIII", file.read(16))
            self.pictures = numpy.frombuffer(file.read(), numpy.uint8).reshape(count, height, width)
        with open(f"{folder}/train-labels-idx1-ubyte", "rb") as file:
            file.read(8)
            self.labels = numpy.frombuffer(file.read(), numpy.uint8)
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.transform(Image.fromarray(self.pictures[index])), int(self.labels[index])


def batches(data, batch, workers):
    """Shuffled batches (channels-last, labels), epoch after epoch."""
    loader = torch.utils.data.DataLoader(data, batch, shuffle=True, num_workers=workers, drop_last=True,
                                         persistent_workers=workers > 0)
    while True:
        for pictures, labels in loader:
            yield pictures.to(memory_format=torch.channels_last), labels
