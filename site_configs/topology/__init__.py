"""Process counts and layouts of a machine, and the facts that they follow from."""
