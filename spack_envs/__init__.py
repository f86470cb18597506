"""Builds: one Spack environment per MPI, our recipes, and the code that finds, fetches and drives Spack."""
