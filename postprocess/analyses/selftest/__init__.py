"""Injected slowdowns: what a night catches, misses and flags wrongly."""
