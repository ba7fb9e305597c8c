"""A trainer as of PyTorch Lightning: hooks of a module, and a closure that the optimizer is given."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(96, 24), nn.Linear(24, 96)

    def training_step(self, batch):
        (x,) = batch
        return nn.functional.mse_loss(self.decoder(torch.relu(self.encoder(x))), x)

    def configure_optimizers(self):
        return torch.optim.Adagrad(self.parameters())


class Trainer:
    def __init__(self, max_epochs):
        self.max_epochs = max_epochs

    def fit(self, module, loader):
        optimizer = module.configure_optimizers()
        for _ in range(self.max_epochs):
            for batch in iter(loader):
                optimizer.step(closure=lambda batch=batch: self.closure(module, optimizer, batch))

    @staticmethod
    def closure(module, optimizer, batch):
        loss = module.training_step(batch)
        optimizer.zero_grad()
        loss.backward()
        return loss


Trainer(max_epochs=2).fit(AutoEncoder(), DataLoader(TensorDataset(torch.randn(256, 96)), batch_size=32))
