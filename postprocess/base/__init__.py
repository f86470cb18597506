"""Helpers that know nothing of measuring: files, JSON, formats, progress, work directory, errors."""
