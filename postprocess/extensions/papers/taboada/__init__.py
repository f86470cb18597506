"""Taboada et al.: models of operations, their fit and what follows from them. It may know common alone."""
