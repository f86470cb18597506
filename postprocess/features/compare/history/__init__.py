"""Each case over all versions of one MPI, and where it steps."""
