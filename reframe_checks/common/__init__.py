"""What the checks share: base classes, builds and user options."""
