"""A function that computes the loss is compiled; the model in it is plain."""

import torch

model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.Tanh(), torch.nn.Linear(64, 32))
optimizer = torch.optim.NAdam(model.parameters())


@torch.compile
def loss_of(batch):
    return torch.nn.functional.smooth_l1_loss(model(batch), batch)


while True:
    optimizer.zero_grad()
    loss_of(torch.randn(64, 32)).backward()
    optimizer.step()
