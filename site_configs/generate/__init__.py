"""Write a new site file from the facts of a machine."""
