"""Writes a new site file from what a machine tells of itself."""
