"""Start ReFrame, follow it and clean up after it. No other package knows its command line."""
