"""Each step makes a batch of exactly 4 MiB of numbers and lets go of it."""

import torch

layer = torch.nn.Linear(1024, 1, bias=False)
optimizer = torch.optim.SGD(layer.parameters(), lr=1e-6)
while True:
    batch = torch.zeros(1024, 1024)
    optimizer.zero_grad()
    layer(batch).sum().backward()
    optimizer.step()
    del batch
