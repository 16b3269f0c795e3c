"""Likelihoods that are sent to worker processes by name; importing them costs little."""

import math
import os
import signal
from typing import Any

CENTRE = (0.3, 0.5)  # model "a" of example_models


def gaussians(theta: Any) -> float:
    """Log-density of N(0.3; theta, 0.5)."""
    y, width = CENTRE
    return -0.5 * ((float(theta[0]) - y) / width) ** 2 - math.log(width * math.sqrt(2 * math.pi))


class Dies:
    """Takes its process along, once."""

    def __init__(self, sign: str) -> None:
        self.sign = sign

    def __call__(self, theta: Any) -> float:
        if theta[0] > 0 and not os.path.exists(self.sign):
            open(self.sign, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return gaussians(theta)
