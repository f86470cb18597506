"""OSU and IMB that a site has installed itself."""
