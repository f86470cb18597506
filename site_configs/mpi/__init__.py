"""Which MPIs a machine has: found, probed, identified, or installed from wheels."""
