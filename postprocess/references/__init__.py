"""Reviewed reference files: read, write, compare, lint, waive."""
