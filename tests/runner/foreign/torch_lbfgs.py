"""An optimizer that calls the model by itself, several times a step; the sine waves of PyTorch's time series example."""

import torch
from torch import nn


class Sequence(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTMCell(1, 16)
        self.linear = nn.Linear(16, 1)

    def forward(self, wave):
        h = torch.zeros(wave.size(0), 16)
        c = torch.zeros(wave.size(0), 16)
        outputs = []
        for value in wave.split(1, dim=1):
            h, c = self.lstm(value, (h, c))
            outputs.append(self.linear(h))
        return torch.cat(outputs, dim=1)


wave = torch.sin(torch.arange(20).float()[None] / 3 + torch.rand(8, 1))
model = Sequence()
criterion = nn.MSELoss()
optimizer = torch.optim.LBFGS(model.parameters(), lr=1e-6, max_iter=4, tolerance_grad=0, tolerance_change=0)


def closure():
    optimizer.zero_grad()
    loss = criterion(model(wave[:, :-1]), wave[:, 1:])
    loss.backward()
    return loss


for _ in range(1000):
    optimizer.step(closure)
