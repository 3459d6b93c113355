"""Numba's CUDA simulator: one processor, short turns, and shared arrays that all threads share."""

import os
import sys

import numpy as np
from numba import config


def shared_array(self, shape, dtype):
    """Return the array of the calling line, the same one to all threads.

    In Numba's own version two threads can both find none, and then each has one of its own."""
    frame = sys._getframe(1)
    line = frame.f_code, frame.f_lineno
    return self._allocations.setdefault(line, np.empty(shape, dtype))


if config.ENABLE_CUDASIM:
    from numba.cuda.simulator.kernelapi import FakeCUDAShared

    FakeCUDAShared.array = shared_array
    sys.setswitchinterval(1e-3)  # the simulator polls its threads: long turns are wasted
    if hasattr(os, "sched_setaffinity"):  # they only hinder each other on several processors
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
