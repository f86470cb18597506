"""What the programs can measure: routines of mpicost, OSU, IMB and Taboada et al.; guidelines between them."""
