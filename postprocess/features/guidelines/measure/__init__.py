"""Guidelines of MPIs, measured and judged. It may know lifecycle alone."""
