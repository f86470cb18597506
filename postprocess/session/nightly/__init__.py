"""A night, its calibration, and what a site ran with its own ReFrame. It may know lifecycle alone."""
