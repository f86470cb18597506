"""RUS Stuttgart on its T3E-512: what follows from a time per call. It may know common alone."""
