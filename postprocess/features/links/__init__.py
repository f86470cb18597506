"""All pairs of nodes compared with each other: slow nodes and bad links."""
