"""A data set that takes 5 ms for an item, in the process that trains; a batch of 4 beside a model that takes 10 ms."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Slow(Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, index):
        time.sleep(0.005)
        return torch.full((16,), float(index)), index % 2


class Model(nn.Sequential):
    def forward(self, x):
        time.sleep(0.01)
        return super().forward(x)


model = Model(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
criterion = nn.CrossEntropyLoss()
for epoch in range(3):
    for inputs, labels in DataLoader(Slow(), batch_size=4):
        optimizer.zero_grad()
        criterion(model(inputs), labels).backward()
        optimizer.step()
