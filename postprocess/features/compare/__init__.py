"""Comparison of two sides, measured in turn: an MPI upgrade, another setting, another build."""
