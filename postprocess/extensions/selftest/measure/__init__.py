"""Slowdowns planted into nights and comparisons, to see which are found. It may know them all."""
