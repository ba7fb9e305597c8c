"""Gradients of four batches make a step, and are clipped before it; a schedule wraps the optimizer's step."""

import itertools

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ACCUMULATE = 4
model = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 64))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1000)
data = DataLoader(TensorDataset(torch.randn(128, 64)), batch_size=16)
for epoch in itertools.count():
    for number, (batch,) in enumerate(data):
        loss = nn.functional.mse_loss(model(batch), batch) / ACCUMULATE
        loss.backward()
        if (number + 1) % ACCUMULATE == 0:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
