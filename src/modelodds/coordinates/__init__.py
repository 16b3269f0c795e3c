"""The maps between a prior's parameters theta and its internal coordinates x, one file per kind of prior."""
