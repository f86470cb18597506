"""Program output to records, strictly: mpicost, OSU, IMB, the witness, ReFrame's report."""
