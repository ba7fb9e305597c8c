"""Two workers that take 40 ms for a batch each: with nothing else to do, the training waits 20 ms for each."""

import time

import torch
from torch.utils.data import DataLoader, IterableDataset


class Stream(IterableDataset):
    def __iter__(self):
        for number in range(60):
            time.sleep(0.01)
            yield torch.ones(8) * number


def main():
    weights = torch.nn.Parameter(torch.zeros(8))
    optimizer = torch.optim.RMSprop([weights])
    for _ in range(2):
        for batch in DataLoader(Stream(), batch_size=4, num_workers=2):
            loss = ((batch @ weights) - batch.sum(1)).pow(2).mean()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
