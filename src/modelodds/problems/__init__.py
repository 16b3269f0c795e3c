"""Benchmark problems with known answers, one file each."""

from modelodds.problems.base import Problem
from modelodds.problems.plane import plane
from modelodds.problems.regression import regression
from modelodds.problems.tails import tails

__all__ = ["Problem", "plane", "regression", "tails"]
