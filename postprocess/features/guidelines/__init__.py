"""Self-consistent performance guidelines: which operations lose to what has the same result or does more."""
