"""Statistics without input or output: bands, power, shrinkage, false discovery."""
