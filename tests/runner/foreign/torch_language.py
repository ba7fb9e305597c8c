"""A small language model with causal attention; batches are cut out of a tensor, as in nanoGPT."""

import torch
from torch import nn
from torch.nn import functional as F

BLOCK, WIDTH, VOCABULARY = 32, 64, 100
data = torch.randint(0, VOCABULARY, (10_000,))


def get_batch():
    begins = torch.randint(len(data) - BLOCK, (8,))
    x = torch.stack([data[i : i + BLOCK] for i in begins.tolist()])
    return x, torch.stack([data[i + 1 : i + 1 + BLOCK] for i in begins.tolist()])


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.project = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = (part.view(*x.shape[:2], 4, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.project(y.transpose(1, 2).reshape(x.shape))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList([Attention() for _ in range(2)])
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, idx, targets):
        x = self.tokens(idx)
        for block in self.blocks:
            x = x + block(F.layer_norm(x, (WIDTH,)))
        return F.cross_entropy(self.head(x).flatten(0, 1), targets.flatten())


model = GPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
iteration = 0
while iteration < 5000:
    loss = model(*get_batch())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    iteration += 1
