"""Helpers without knowledge of measuring: files, JSON, formats, progress, work directory, errors."""
