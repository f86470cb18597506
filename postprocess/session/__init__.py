"""What runs from start to end: a package for each kind, whose ``run`` is the whole, above ``lifecycle``."""
