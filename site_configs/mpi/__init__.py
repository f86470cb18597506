"""The MPIs of a machine: found, probed, identified, or installed from wheels."""
