"""Applications: comparisons that a field makes as they are, with its own data and models."""
