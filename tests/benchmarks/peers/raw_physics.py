#!/usr/bin/env python3
"""A bare mj_step loop: peers/raw_physics.py MODEL.xml SUBSTEPS SECONDS prints control steps per second.

Random controls, one mj_step call of SUBSTEPS per control step, wall-clock time: what an environment
actor could reach at most on one core. Waits for a line on standard input before it starts, so that
several of them can be started together."""

import sys
import time

import mujoco
import numpy as np

model = mujoco.MjModel.from_xml_path(sys.argv[1])
substeps, seconds = int(sys.argv[2]), float(sys.argv[3])
data = mujoco.MjData(model)
controls = np.random.default_rng(0).uniform(-1, 1, (1000, model.nu))
mujoco.mj_step(model, data, substeps)
print("ready", flush=True)
sys.stdin.readline()
steps, start = 0, time.perf_counter()
while time.perf_counter() - start < seconds:
    for control in controls[:100]:
        data.ctrl[:] = control
        mujoco.mj_step(model, data, substeps)
    steps += 100
print(steps / (time.perf_counter() - start))
