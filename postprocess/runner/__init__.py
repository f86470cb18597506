"""Starts ReFrame, follows it and cleans up after it; no other package knows its command line."""
