"""Builds: one Spack environment per MPI, our recipes, and what finds, fetches and drives Spack."""
