"""Experiments: what to run, the runner, its statistics and figures."""
