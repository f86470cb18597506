"""The routines of mpicost, OSU, IMB and Taboada et al., and guidelines between them."""
