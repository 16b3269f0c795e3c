"""Likelihoods that come from elsewhere."""
