"""Mixed precision with a gradient scaler, which steps the optimizer."""

import torch
from torch import nn

model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
scaler = torch.amp.GradScaler("cpu")
for _ in range(3000):
    inputs, labels = torch.randn(32, 128), torch.randint(0, 8, (32,))
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(inputs), labels)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    scaler.step(optimizer)
    scaler.update()
