"""Gaussian-process surrogate of a log-likelihood."""
