"""Everything that a machine without a network needs, in one folder."""
