"""Alarms of past nights against those that chance alone would have raised."""
