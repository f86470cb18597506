"""The benchmark programs, and those that a site has installed itself."""
