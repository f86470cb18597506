"""The machine: cores, caches, GPUs, limits, and the process counts and layouts that follow from them."""
