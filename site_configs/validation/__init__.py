"""Reads a site file in a process of its own and finds every fault in it."""
