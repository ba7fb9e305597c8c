"""Two networks with an optimizer each: for every step of the generator, the discriminator makes one on two batches."""

import torch
from torch import nn


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 32))

    def forward(self, noise):
        return self.main(noise)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(nn.Linear(32, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))

    def forward(self, sample):
        return self.main(sample)


netG, netD = Generator(), Discriminator()
optimizerD = torch.optim.Adam(netD.parameters(), betas=(0.5, 0.999))
optimizerG = torch.optim.Adam(netG.parameters(), betas=(0.5, 0.999))
criterion = nn.BCEWithLogitsLoss()
real, fake = torch.ones(64, 1), torch.zeros(64, 1)
for _ in range(3000):
    netD.zero_grad()
    criterion(netD(torch.randn(64, 32)), real).backward()
    made = netG(torch.randn(64, 16))
    criterion(netD(made.detach()), fake).backward()
    optimizerD.step()
    netG.zero_grad()
    criterion(netD(made), real).backward()
    optimizerG.step()
