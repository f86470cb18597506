"""A nightly run, a calibration or a self-test from start to end."""
