"""A recommender: sparse embeddings with an optimizer of their own, dense layers with another; a copy is averaged."""

import copy

import torch
from torch import nn


class Towers(nn.Module):
    def __init__(self):
        super().__init__()
        self.users, self.items = (nn.EmbeddingBag(5000, 32, mode="sum", sparse=True) for _ in range(2))
        self.top = nn.Linear(64, 1)

    def forward(self, users, items):
        return self.top(torch.cat([self.users(users), self.items(items)], dim=1)).squeeze(1)


model = Towers()
average = copy.deepcopy(model)
sparse = torch.optim.SparseAdam([*model.users.parameters(), *model.items.parameters()])
dense = torch.optim.Adam(model.top.parameters())
for _ in range(3000):
    users, items = (torch.randint(0, 5000, (64, 4)) for _ in range(2))
    loss = nn.functional.binary_cross_entropy_with_logits(model(users, items), torch.rand(64).round())
    for optimizer in (sparse, dense):
        optimizer.zero_grad()
    loss.backward()
    sparse.step()
    dense.step()
    with torch.no_grad():
        for mean, now in zip(average.top.parameters(), model.top.parameters()):
            mean.lerp_(now, 0.01)
