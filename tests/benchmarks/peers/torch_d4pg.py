#!/usr/bin/env python3
"""The peer of `troupe bench learner`: the same D4PG step in PyTorch, eager or through torch.compile.

Usage: torch_d4pg.py eager|compile --threads N. It prints "ready" after its warm-up; then each line
"SECONDS" on its input is answered by one JSON line with updates_per_second, measured over that time.
It sleeps in between, so that it can be timed in turns with others.

One update (arXiv:1804.08617; sizes and hyper-parameters of the reference step): batch 256,
observation 17, action 6, policy 256-256-256, critic 512-512-256 with 51 atoms, first layer followed
by LayerNorm and tanh, then ELU; cross-entropy to the projected target; policy gradient through the
critic's mean with dQ/da clipped to 1 per element; gradient norms clipped to 40; fused Adam 1e-4;
target copy every 100 updates.
"""

import argparse
import json
import sys
import time

import torch
from torch import nn

OBSERVATION, ACTION, BATCH, ATOMS = 17, 6, 256, 51
V_MIN, V_MAX = -150.0, 150.0
TARGET_PERIOD = 100


def body(inputs, widths, outputs):
    """Linear, LayerNorm, tanh; then Linear and ELU; then a last Linear."""
    layers = [nn.Linear(inputs, widths[0]), nn.LayerNorm(widths[0]), nn.Tanh()]
    for before, after in zip(widths, widths[1:]):
        layers += [nn.Linear(before, after), nn.ELU()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], outputs))


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = body(OBSERVATION, [256, 256, 256], ACTION)

    def forward(self, observation):  # [batch, 17] -> [batch, 6] in (-1, 1)
        return torch.tanh(self.body(observation))


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = body(OBSERVATION + ACTION, [512, 512, 256], ATOMS)

    def forward(self, observation, action):  # -> logits [batch, 51]
        return self.body(torch.cat([observation, action], dim=1))


class Learner:
    def __init__(self, compiled):
        self.policy, self.target_policy = Policy(), Policy()
        self.critic, self.target_critic = Critic(), Critic()
        self.support = torch.linspace(V_MIN, V_MAX, ATOMS)
        self.policy_optimizer = torch.optim.Adam(self.policy.parameters(), lr=1e-4, fused=True)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), lr=1e-4, fused=True)
        self.updates = 0
        self.copy_targets()
        wrap = torch.compile if compiled else (lambda function: function)
        self.target = wrap(self.projected_target)
        self.critic_loss = wrap(self.cross_entropy)
        self.value = wrap(self.mean_value)

    def copy_targets(self):
        self.target_policy.load_state_dict(self.policy.state_dict())
        self.target_critic.load_state_dict(self.critic.state_dict())

    def projected_target(self, reward, discount, following):
        """Probabilities [batch, 51] of r + discount * z under the target networks, on the support."""
        probabilities = torch.softmax(
            self.target_critic(following, self.target_policy(following)), dim=1)
        step = (V_MAX - V_MIN) / (ATOMS - 1)
        moved = (reward[:, None] + discount[:, None] * self.support).clamp(V_MIN, V_MAX)
        position = (moved - V_MIN) / step
        low = position.floor().clamp(0, ATOMS - 2)
        share = position - low
        index = low.long()
        result = torch.zeros_like(probabilities)
        result.scatter_add_(1, index, probabilities * (1 - share))
        result.scatter_add_(1, index + 1, probabilities * share)
        return result

    def cross_entropy(self, observation, action, target):
        logits = self.critic(observation, action)
        return -(target * torch.log_softmax(logits, dim=1)).sum(1).mean()

    def mean_value(self, observation, action):
        return (torch.softmax(self.critic(observation, action), dim=1) * self.support).sum(1)

    def update(self, batch):
        observation, action, reward, discount, following = batch
        with torch.no_grad():
            target = self.target(reward, discount, following)
        self.critic_optimizer.zero_grad(set_to_none=True)
        self.critic_loss(observation, action, target).backward()

        self.policy_optimizer.zero_grad(set_to_none=True)
        chosen = self.policy(observation)
        probe = chosen.detach().requires_grad_()
        (slope,) = torch.autograd.grad(self.value(observation, probe).sum(), probe)
        chosen.backward(-slope.clamp(-1, 1) / BATCH)

        nn.utils.clip_grad_norm_(self.critic.parameters(), 40.0)
        nn.utils.clip_grad_norm_(self.policy.parameters(), 40.0)
        self.critic_optimizer.step()
        self.policy_optimizer.step()
        self.updates += 1
        if self.updates % TARGET_PERIOD == 0:
            self.copy_targets()


def random_batch():
    return (torch.randn(BATCH, OBSERVATION), torch.rand(BATCH, ACTION) * 2 - 1, torch.rand(BATCH) * 5,
            torch.full((BATCH,), 0.99**5), torch.randn(BATCH, OBSERVATION))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mode", choices=["eager", "compile"])
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    learner = Learner(arguments.mode == "compile")
    batches = [random_batch() for _ in range(8)]
    for batch in batches * 3:
        learner.update(batch)
    print("ready", flush=True)
    for line in sys.stdin:
        seconds, count, start = float(line), 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            learner.update(batches[count % len(batches)])
            count += 1
        rate = count / (time.perf_counter() - start)
        print(json.dumps({"updates_per_second": rate, "updates": count}), flush=True)


if __name__ == "__main__":
    main()
