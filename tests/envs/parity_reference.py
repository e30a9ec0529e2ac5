"""Plays one episode in the reference implementation and writes what it saw as raw doubles.

    parity_reference.py TASK SEED ACTIONS OUT

TASK is "dmc/<domain>_<task>" (dm_control) or "pendulum" (Gymnasium). ACTIONS holds doubles, one row per
step. The episode is reset by the reference's own code, which draws from Troupe's random stream of SEED.
OUT, all doubles: number of steps, observation size, action size, state size, time limit in steps,
control time step, action bounds (low, then high); the first state and observation; then for each step
state, observation, reward, whether it was the last, and the discount.
"""

import math
import os
import sys

import numpy as np

MASK = (1 << 64) - 1


def splitmix64(state):
    state = (state + 0x9E3779B97F4A7C15) & MASK
    z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return state, z ^ (z >> 31)


class TroupeRandom(np.random.RandomState):
    """envs/spec/random.hpp under the names that the reference calls."""

    def __init__(self, seed):
        super().__init__(0)
        self._words = []
        for _ in range(4):
            seed, word = splitmix64(seed)
            self._words.append(word)

    def _next(self):
        rotate = lambda x, k: ((x << k) | (x >> (64 - k))) & MASK
        s = self._words
        result = (rotate((s[0] + s[3]) & MASK, 23) + s[0]) & MASK
        t = (s[1] << 17) & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotate(s[3], 45)
        return result

    def _unit(self):
        return (self._next() >> 11) * 2.0**-53

    def _normal(self):
        radius = math.sqrt(-2.0 * math.log(1.0 - self._unit()))
        return radius * math.cos(2.0 * math.pi * self._unit())

    def uniform(self, low=0.0, high=1.0, size=None):
        low, high = np.asarray(low, float), np.asarray(high, float)
        shape = np.broadcast(low, high).shape if size is None else (size,)
        draws = np.array([self._unit() for _ in range(int(np.prod(shape)))]).reshape(shape)
        values = low + (high - low) * draws
        return values if shape else float(values)

    def randn(self, *shape):
        values = np.array([self._normal() for _ in range(int(np.prod(shape)))]).reshape(shape)
        return values if shape else float(values)


def play_suite(name, seed, actions):
    os.environ["MUJOCO_GL"] = "disabled"
    from dm_control import suite

    domain, task = name.removeprefix("dmc/").split("_", 1)
    env = suite.load(domain, task)
    env.task._random = TroupeRandom(seed)
    spec = env.action_spec()
    actions = actions.reshape(-1, spec.shape[0])
    state = lambda: np.concatenate([env.physics.data.qpos, env.physics.data.qvel])
    flat = lambda step: np.concatenate([np.ravel(value) for value in step.observation.values()])

    first = env.reset()
    rows = [state(), flat(first)]
    header = [len(actions), flat(first).size, spec.shape[0], state().size, env._step_limit,
              env.control_timestep(), *spec.minimum, *spec.maximum]
    for action in actions:
        step = env.step(action)
        rows += [state(), flat(step), [step.reward, float(step.last()), step.discount]]
    return header, rows


def play_pendulum(seed, actions):
    import gymnasium
    from gymnasium.envs.classic_control import pendulum

    env = gymnasium.make("Pendulum-v1")
    inner = env.unwrapped
    env.reset(seed=0)
    inner.np_random = TroupeRandom(seed)
    inner.reset()
    # The reference rounds its observation to float32: it is taken from the state in double here.
    observe = lambda: [math.cos(inner.state[0]), math.sin(inner.state[0]), inner.state[1]]
    rows = [list(inner.state), observe()]
    header = [len(actions), 3, 1, 2, env.spec.max_episode_steps, inner.dt, -inner.max_torque,
              inner.max_torque]
    for action in actions:
        _, reward, terminated, truncated, _ = env.step(np.array([action]))
        discount = 0.0 if terminated else 1.0
        rows += [list(inner.state), observe(), [reward, float(terminated or truncated), discount]]
    return header, rows


def main():
    name, seed, actions_path, out_path = sys.argv[1:]
    actions = np.fromfile(actions_path)
    if name == "pendulum":
        header, rows = play_pendulum(int(seed), actions)
    else:
        header, rows = play_suite(name, int(seed), actions)
    np.concatenate([np.asarray(part, float) for part in [header, *rows]]).tofile(out_path)


if __name__ == "__main__":
    main()
