"""Reinforcement learning: an episode of the policy, then one step; no data set."""

import torch
from torch import nn
from torch.distributions import Categorical

policy = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
LENGTH = 10  # of an episode

for _ in range(2000):
    state, logs, rewards = torch.randn(4), [], []
    for _ in range(LENGTH):
        chosen = Categorical(logits=policy(state))
        action = chosen.sample()
        logs.append(chosen.log_prob(action))
        rewards.append(1.0 if action.item() == 1 else 0.0)
        state = torch.randn(4)
    returns = torch.tensor(rewards).flip(0).cumsum(0).flip(0)
    loss = -(torch.stack(logs) * (returns - returns.mean())).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
