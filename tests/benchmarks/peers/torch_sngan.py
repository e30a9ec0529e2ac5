#!/usr/bin/env python3
"""The peer of a `job: sngan` run: class-conditional SN-GAN for 32 x 32 grey pictures, widths 32, batches of
64, two steps of the discriminator before each of the generator, fused Adam, channels-last. Pictures
are padded to 32 x 32 by torchvision on Pillow.

Usage: torch_sngan.py FOLDER --workers N --threads N, as pictures_peer.answer says: generator steps per
second. Real and generated pictures go through the discriminator as one batch, and its power iteration
rests while the generator steps, as on the other side.
"""


import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm
from torchvision import transforms

import pictures_peer

WIDTH, BATCH, CLASSES, NOISE, STEPS = 32, 64, 10, 128, 2


class ConditionalNorm(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels, affine=False)
        self.scale, self.shift = nn.Embedding(CLASSES, channels), nn.Embedding(CLASSES, channels)
        nn.init.ones_(self.scale.weight)
        nn.init.zeros_(self.shift.weight)

    def forward(self, x, labels):
        return self.norm(x) * self.scale(labels)[:, :, None, None] + self.shift(labels)[:, :, None, None]


class GeneratorBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.first_norm, self.second_norm = ConditionalNorm(WIDTH), ConditionalNorm(WIDTH)
        self.first, self.second = nn.Conv2d(WIDTH, WIDTH, 3, 1, 1), nn.Conv2d(WIDTH, WIDTH, 3, 1, 1)
        self.shortcut = nn.Conv2d(WIDTH, WIDTH, 1)

    def forward(self, x, labels):
        h = F.interpolate(F.relu(self.first_norm(x, labels)), scale_factor=2)
        h = self.second(F.relu(self.second_norm(self.first(h), labels)))
        return h + self.shortcut(F.interpolate(x, scale_factor=2))


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.input = nn.Linear(NOISE, 16 * WIDTH)
        self.blocks = nn.ModuleList([GeneratorBlock() for _ in range(3)])
        self.norm, self.output = nn.BatchNorm2d(WIDTH), nn.Conv2d(WIDTH, 1, 3, 1, 1)

    def forward(self, noise, labels):
        x = self.input(noise).view(-1, WIDTH, 4, 4).contiguous(memory_format=torch.channels_last)
        for block in self.blocks:
            x = block(x, labels)
        return torch.tanh(self.output(F.relu(self.norm(x))))


class DiscriminatorBlock(nn.Module):
    def __init__(self, inputs, down, first):
        super().__init__()
        self.down, self.is_first = down, first
        self.first = spectral_norm(nn.Conv2d(inputs, WIDTH, 3, 1, 1))
        self.second = spectral_norm(nn.Conv2d(WIDTH, WIDTH, 3, 1, 1))
        self.shortcut = spectral_norm(nn.Conv2d(inputs, WIDTH, 1)) if down else None

    def forward(self, x):
        h = self.second(F.relu(self.first(x if self.is_first else F.relu(x))))
        if self.down:
            h = F.avg_pool2d(h, 2)
            x = self.shortcut(F.avg_pool2d(x, 2)) if self.is_first else F.avg_pool2d(self.shortcut(x), 2)
        return h + x


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(DiscriminatorBlock(1, True, True), DiscriminatorBlock(WIDTH, True, False),
                                    DiscriminatorBlock(WIDTH, False, False),
                                    DiscriminatorBlock(WIDTH, False, False))
        self.score = spectral_norm(nn.Linear(WIDTH, 1, bias=False))
        self.classes = spectral_norm(nn.Embedding(CLASSES, WIDTH))

    def forward(self, x, labels):
        h = F.relu(self.blocks(x)).sum((2, 3))
        return self.score(h).squeeze(1) + (self.classes(labels) * h).sum(1)


def main():
    arguments = pictures_peer.training_arguments(__doc__)
    transform = transforms.Compose([transforms.RandomCrop(32, padding=2), transforms.PILToTensor()])
    data = pictures_peer.Idx(f"{arguments.folder}/idx", transform)
    given = pictures_peer.batches(data, BATCH, arguments.workers)
    generator = Generator().to(memory_format=torch.channels_last)
    discriminator = Discriminator().to(memory_format=torch.channels_last)
    optimizers = [torch.optim.Adam(model.parameters(), lr=2e-4, betas=(0.0, 0.9), fused=True)
                  for model in (generator, discriminator)]

    def made():
        labels = torch.randint(CLASSES, (BATCH,))
        return generator(torch.randn(BATCH, NOISE), labels), labels

    def discriminator_step():
        pictures, labels = next(given)
        real = (pictures.float() + torch.rand(pictures.shape)) / 128 - 1
        with torch.no_grad():
            fakes, their_labels = made()
        scores = discriminator(torch.cat([real, fakes]), torch.cat([labels, their_labels]))
        loss = F.relu(1 - scores[:BATCH]).mean() + F.relu(1 + scores[BATCH:]).mean()
        optimizers[1].zero_grad(set_to_none=True)
        loss.backward()
        optimizers[1].step()

    def step():
        for _ in range(STEPS):
            discriminator_step()
        discriminator.eval().requires_grad_(False)
        fakes, labels = made()
        optimizers[0].zero_grad(set_to_none=True)
        (-discriminator(fakes, labels).mean()).backward()
        optimizers[0].step()
        discriminator.train().requires_grad_(True)

    pictures_peer.answer(step)


if __name__ == "__main__":
    main()
