"""Read a site file in a separate process and find every fault in it."""
