"""Strict parsers of program output: mpicost, OSU, IMB, the witness, ReFrame's report."""
