"""Slurm: its site-file options, its queues and nodes, its jobs, its launchers, and the backend for ReFrame."""
