"""The idiom of PyTorch's first example: a function for an epoch, a loader, evaluation after each epoch."""

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3)
        self.dropout = nn.Dropout(0.25)
        self.fc1 = nn.Linear(8 * 13 * 13, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        return F.log_softmax(self.fc1(torch.flatten(self.dropout(x), 1)), dim=1)


def train(model, loader, optimizer):
    model.train()
    for data, target in loader:
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()


@torch.no_grad()
def test(model, loader):
    model.eval()
    return sum((model(data).argmax(1) == target).sum().item() for data, target in loader)


def main():
    torch.manual_seed(1)
    images, labels = torch.randn(256, 1, 28, 28), torch.randint(0, 10, (256,))
    loader = DataLoader(TensorDataset(images, labels), batch_size=32, shuffle=True)
    held_out = DataLoader(TensorDataset(images[:64], labels[:64]), batch_size=64)
    model = Net()
    optimizer = optim.Adadelta(model.parameters(), lr=1.0)
    for _ in range(2):
        train(model, loader, optimizer)
        test(model, held_out)


if __name__ == "__main__":
    main()
