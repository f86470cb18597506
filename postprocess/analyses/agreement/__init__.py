"""mpicost, OSU and IMB compared with each other."""
