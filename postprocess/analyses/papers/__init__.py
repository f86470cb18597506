"""A session in the tables and figures of the papers: a package for each of them, above ``common``."""
