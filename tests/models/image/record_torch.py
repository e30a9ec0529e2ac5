#!/usr/bin/env python3
"""Prints, for image_models_test.cpp, what PyTorch makes of the same networks with the same weights.

Needs torch and torchvision. Every array is filled by a formula (see `filled`), in float64. For each network:
its number of parameters, the loss, and the L2 norm of the gradient of some arrays.
"""

import math

import torch
import torch.nn.functional as F
import torchvision

torch.set_default_dtype(torch.float64)


def filled(shape, number, scale):
    """Pseudo-random values in [-scale, scale): a 64-bit hash of the element's index and `number`."""
    x = torch.arange(math.prod(shape), dtype=torch.int64) + number * 1000003
    for multiplier in (6364136223846793005, -49064778989728563):
        x = x * multiplier + 1442695040888963407
        x = x ^ ((x >> 33) & 0x7FFFFFFF)
    return scale * ((x & 0xFFFFFFFF).double() / 2**31 - 1).reshape(shape)


def fill(parameters):
    """Weights by formula, in the order given; one-dimensional ones around 1 (scales) or 0 (biases)."""
    for number, (name, parameter) in enumerate(parameters):
        fan_in = parameter[0].numel()
        if parameter.dim() == 1:
            parameter.data = filled(parameter.shape, number, 0.1) + (0 if name.endswith("bias") else 1)
        else:
            parameter.data = filled(parameter.shape, number, 1.5 / math.sqrt(fan_in))


def show(name, loss, parameters):
    loss.backward()
    print(f'{{"{name}", {sum(p.numel() for _, p in parameters)}, {loss.item():.17g},')
    chosen = [parameters[i] for i in sorted({0, 1, len(parameters) // 2, len(parameters) - 1})]
    print("  {" + ", ".join(f'{{"{n}", {p.grad.norm().item():.17g}}}' for n, p in chosen) + "}},")


def resnet(depth, side, classes):
    network = getattr(torchvision.models, f"resnet{depth}")(num_classes=classes)
    network.train()
    parameters = list(network.named_parameters())
    fill(parameters)
    x = filled((4, 3, side, side), 99, 1)
    show(f"resnet{depth}", F.cross_entropy(network(x), torch.tensor([1, 3, 0, 1])), parameters)


class Arrays:
    """Arrays in the order in which they are asked for, as C++ declares them."""

    def __init__(self):
        self.named = []

    def add(self, name, *shape):
        parameter = torch.nn.Parameter(torch.zeros(shape))
        self.named.append((name, parameter))
        return parameter


def spectral(weight):
    """Divided by its largest singular value, the vectors held fixed: what power iteration converges to."""
    matrix = weight.reshape(weight.shape[0], -1)
    u, _, vh = torch.linalg.svd(matrix.detach(), full_matrices=False)
    return weight / torch.dot(u[:, 0], matrix @ vh[0])


def generator(width, classes):
    arrays = Arrays()
    l1w, l1b = arrays.add("l1.weight", 16 * width, 128), arrays.add("l1.bias", 16 * width)
    blocks = []
    for block in ("block2", "block3", "block4"):
        blocks.append([arrays.add(f"{block}.{n}", *shape) for n, shape in (
            ("b1.weight", (classes, width)), ("b1.bias", (classes, width)),
            ("c1.weight", (width, width, 3, 3)), ("c1.bias", (width,)),
            ("b2.weight", (classes, width)), ("b2.bias", (classes, width)),
            ("c2.weight", (width, width, 3, 3)), ("c2.bias", (width,)),
            ("c_sc.weight", (width, width, 1, 1)), ("c_sc.bias", (width,)))])
    bw, bb = arrays.add("b.weight", width), arrays.add("b.bias", width)
    lw, lb = arrays.add("l.weight", 3, width, 3, 3), arrays.add("l.bias", 3)
    fill(arrays.named)

    def norm(x, weight, bias, labels):
        h = F.batch_norm(x, None, None, training=True)
        return h * weight[labels][:, :, None, None] + bias[labels][:, :, None, None]

    labels = torch.tensor([0, 2, 1])
    x = F.linear(filled((3, 128), 99, 1), l1w, l1b).reshape(3, width, 4, 4)
    for w1, s1, c1, d1, w2, s2, c2, d2, cs, ds in blocks:
        h = F.interpolate(F.relu(norm(x, w1, s1, labels)), scale_factor=2)
        h = F.conv2d(h, c1, d1, padding=1)
        h = F.conv2d(F.relu(norm(h, w2, s2, labels)), c2, d2, padding=1)
        x = h + F.conv2d(F.interpolate(x, scale_factor=2), cs, ds)
    x = torch.tanh(F.conv2d(F.relu(F.batch_norm(x, None, None, bw, bb, training=True)), lw, lb, padding=1))
    show("generator32", (x * filled(x.shape, 5, 1)).mean(), arrays.named)


def discriminator(width, classes):
    arrays = Arrays()
    blocks = []
    for number, (inputs, shortcut) in enumerate(((3, True), (width, True), (width, False), (width, False))):
        name = f"block{number + 1}"
        block = [arrays.add(f"{name}.c1.weight", width, inputs, 3, 3), arrays.add(f"{name}.c1.bias", width),
                 arrays.add(f"{name}.c2.weight", width, width, 3, 3), arrays.add(f"{name}.c2.bias", width)]
        if shortcut:
            block += [arrays.add(f"{name}.c_sc.weight", width, inputs, 1, 1),
                      arrays.add(f"{name}.c_sc.bias", width)]
        blocks.append(block)
    score = arrays.add("l.weight", 1, width)
    table = arrays.add("l_y.weight", classes, width)
    fill(arrays.named)

    x = filled((3, 3, 32, 32), 99, 1)
    for number, block in enumerate(blocks):
        c1, d1, c2, d2 = block[:4]
        h = F.conv2d(x if number == 0 else F.relu(x), spectral(c1), d1, padding=1)
        h = F.conv2d(F.relu(h), spectral(c2), d2, padding=1)
        if number == 0:
            x = F.avg_pool2d(h, 2) + F.conv2d(F.avg_pool2d(x, 2), spectral(block[4]), block[5])
        elif number == 1:
            x = F.avg_pool2d(h, 2) + F.avg_pool2d(F.conv2d(x, spectral(block[4]), block[5]), 2)
        else:
            x = x + h
    h = F.relu(x).sum((2, 3))
    labels = torch.tensor([0, 2, 1])
    scores = F.linear(h, spectral(score))[:, 0] + (spectral(table)[labels] * h).sum(1)
    loss = F.relu(1 - scores[:2]).mean() + F.relu(1 + scores[2:]).mean()
    show("discriminator32", loss, arrays.named)


print(f"// PyTorch {torch.__version__}, torchvision {torchvision.__version__}")
for depth in (18, 34, 50, 101):
    resnet(depth, 64, 5)
generator(6, 3)
discriminator(8, 3)
