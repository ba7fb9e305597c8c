"""The models, in plain PyTorch: a residual network, a language model and a recommender."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

from castmates.workloads.jobs.data import CLASSES, DENSE, TABLES


class Residual(nn.Module):
    """Two convolutions, and the way around them."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(after), nn.BatchNorm2d(after)])
        self.around = nn.Conv2d(before, after, 1, stride, bias=False) if stride > 1 else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """Images to images."""
        inner = functional.relu(self.norms[0](self.first(x)))
        return functional.relu(self.norms[1](self.second(inner)) + self.around(x))


class ConvNet(nn.Module):
    """A residual network after He et al. 2015, section 4.2: three stages, each of half the side and twice the width."""

    def __init__(self, details: Mapping[str, int]) -> None:
        super().__init__()
        width, blocks = details["width"], details["blocks"]
        layers: list[nn.Module] = [nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
        for stage in range(3):
            for block in range(blocks):
                first = stage > 0 and block == 0
                after = width * 2**stage
                layers.append(Residual(after // 2 if first else after, after, 2 if first else 1))
        self.layers = nn.Sequential(*layers)
        self.head = nn.Linear(4 * width, CLASSES)

    def forward(self, inputs: Tensor) -> Tensor:
        """Images to a score for each class."""
        return self.head(self.layers(inputs).mean((2, 3)))

    def loss(self, outputs: Tensor, answers: Tensor) -> Tensor:
        """The cross entropy of the classes."""
        return functional.cross_entropy(outputs, answers)


class Layer(nn.Module):
    """Attention and two matrix products, each with a way around it."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.mixed = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.inner = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        """Sequences to sequences; each place sees those before it."""
        batch, sequence, width = x.shape
        mixed = self.mixed(self.norms[0](x)).view(batch, sequence, 3, self.heads, width // self.heads)
        query, key, value = mixed.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, sequence, width))
        return x + self.inner(self.norms[1](x))


class Transformer(nn.Module):
    """A language model: which token comes next."""

    def __init__(self, details: Mapping[str, int]) -> None:
        super().__init__()
        width, vocabulary = details["width"], details["vocabulary"]
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Parameter(0.02 * torch.randn(details["sequence"], width))
        self.layers = nn.Sequential(*(Layer(width, details["heads"]) for _ in range(details["layers"])))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens to a score for each next token."""
        return self.head(self.norm(self.layers(self.tokens(tokens) + self.places)))

    def loss(self, outputs: Tensor, answers: Tensor) -> Tensor:
        """The cross entropy of the next tokens."""
        return functional.cross_entropy(outputs.flatten(0, 1), answers.flatten())


class Dlrm(nn.Module):
    """A recommender after Naumov et al. 2019: a row of each of 26 tables, and all their products with each other."""

    def __init__(self, details: Mapping[str, int]) -> None:
        super().__init__()
        rows, dim = details["rows"], details["dim"]
        # Gradients that name the rows they change: an update does not touch a whole table.
        self.tables = nn.ModuleList(nn.EmbeddingBag(rows, dim, mode="sum", sparse=True) for _ in range(TABLES))
        self.bottom = nn.Sequential(nn.Linear(DENSE, 64), nn.ReLU(), nn.Linear(64, dim), nn.ReLU())
        pairs = torch.tril_indices(TABLES + 1, TABLES + 1, -1)
        self.register_buffer("pairs", pairs)
        self.top = nn.Sequential(nn.Linear(dim + pairs.shape[1], 128), nn.ReLU(), nn.Linear(128, 1))

    def forward(self, counts: Tensor, rows: Tensor) -> Tensor:
        """Lines of a log to the score of a click."""
        dense = self.bottom(counts)
        found = [table(rows[:, place : place + 1]) for place, table in enumerate(self.tables)]
        together = torch.stack([dense, *found], 1)
        products = torch.bmm(together, together.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        return self.top(torch.cat([dense, products], 1)).squeeze(1)

    def loss(self, outputs: Tensor, answers: Tensor) -> Tensor:
        """The cross entropy of clicks."""
        return functional.binary_cross_entropy_with_logits(outputs, answers)
