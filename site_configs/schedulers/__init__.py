"""Slurm, PBS and no scheduler: what each is asked, and how each starts jobs and launches."""
