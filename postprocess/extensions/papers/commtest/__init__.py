"""COMMTEST: swaps while others swap too. It may know the models of taboada."""
