"""A session in the tables and figures of the papers."""
