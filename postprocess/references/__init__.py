"""Reviewed reference files: read, write, compare and check them, and waive known failures."""
