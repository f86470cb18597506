"""Times over sizes: straight lines, breaks and steps. It may know nothing beside it."""
