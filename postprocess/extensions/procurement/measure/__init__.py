"""Rules of a procurement, measured for an offer or an acceptance. It may know lifecycle alone."""
