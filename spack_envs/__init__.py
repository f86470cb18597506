"""Spack: one environment per MPI, the recipe of the suite, and what finds or fetches Spack itself."""
