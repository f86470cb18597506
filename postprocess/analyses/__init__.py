"""Questions beyond one case of one night; no analysis knows another."""
