"""What became slower over many nights: steps that stay, and slow creep."""
