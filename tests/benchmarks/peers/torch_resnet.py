#!/usr/bin/env python3
"""The peer of a `job: resnet` run: ResNet-18 with a stem for small pictures, width 16, batch 128, SGD with
Nesterov momentum, decay on weights alone, label smoothing 0.1, channels-last. Pictures are decoded,
padded, cut and mirrored by torchvision on Pillow.

Usage: torch_resnet.py FOLDER --workers N --threads N, as pictures_peer.answer says: steps per second.
"""


import torch
from torch import nn
from torchvision import datasets, transforms

import pictures_peer

WIDTH, BATCH, CLASSES = 16, 128, 10


def convolution(inputs, outputs, kernel, stride):
    return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first, self.first_norm = convolution(inputs, outputs, 3, stride), nn.BatchNorm2d(outputs)
        self.second, self.second_norm = convolution(outputs, outputs, 3, 1), nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut = None
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(convolution(inputs, outputs, 1, stride),
                                          nn.BatchNorm2d(outputs))

    def forward(self, x):
        out = self.relu(self.first_norm(self.first(x)))
        out = self.second_norm(self.second(out))
        out += x if self.shortcut is None else self.shortcut(x)
        return self.relu(out)


def network():
    layers, inputs = [convolution(3, WIDTH, 3, 1), nn.BatchNorm2d(WIDTH), nn.ReLU(inplace=True)], WIDTH
    for stage in range(4):
        for block in range(2):
            outputs = WIDTH << stage
            layers.append(Block(inputs, outputs, 2 if stage > 0 and block == 0 else 1))
            inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, CLASSES))


def main():
    arguments = pictures_peer.training_arguments(__doc__)
    transform = transforms.Compose([
        transforms.RandomCrop(28, padding=2), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
        transforms.Normalize([0.5, 0.5, 0.5], [0.25, 0.25, 0.25])])
    data = datasets.ImageFolder(f"{arguments.folder}/small/train", transform)
    given = pictures_peer.batches(data, BATCH, arguments.workers)
    model = network().to(memory_format=torch.channels_last)
    weights = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() == 1]
    optimizer = torch.optim.SGD([{"params": weights, "weight_decay": 5e-4}, {"params": others}], lr=0.1,
                                momentum=0.9, nesterov=True, fused=True)
    loss = nn.CrossEntropyLoss(label_smoothing=0.1)

    def step():
        pictures, labels = next(given)
        optimizer.zero_grad(set_to_none=True)
        loss(model(pictures), labels).backward()
        optimizer.step()

    pictures_peer.answer(step)


if __name__ == "__main__":
    main()
