"""The checks: declarations of what is measured. What they share is in ``mpicost.py`` and ``build.py``."""
