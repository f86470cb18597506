"""Files that people or programs write, read strictly: JSON, TOML, JSON lines, data classes of either."""
