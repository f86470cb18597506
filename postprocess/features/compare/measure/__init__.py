"""Sides of a comparison: measured in turn, or stored. It may know lifecycle alone."""
