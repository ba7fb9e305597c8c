"""A model that PyTorch compiles, trained by a loop that is not compiled."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down, self.norm = nn.Linear(64, 256), nn.Linear(256, 64), nn.LayerNorm(64)

    def forward(self, x):
        return self.norm(x + self.down(torch.nn.functional.silu(self.up(x))))


model = torch.compile(nn.Sequential(Block(), Block()))
optimizer = torch.optim.Adam(model.parameters())
for _ in range(5000):
    x = torch.randn(128, 64)
    loss = (model(x) - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
