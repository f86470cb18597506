"""Slurm, PBS, LSF and no scheduler: their queries, and how they start jobs and launches."""
