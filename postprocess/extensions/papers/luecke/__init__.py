"""Luecke et al. (2001) and Luecke, Kraeva and Ju (2003): ratios, scalability, spread. It may know rus."""
