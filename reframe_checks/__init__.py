"""The checks: declarations of what is measured. What they share is in ``measuring.py`` and ``build.py``."""
