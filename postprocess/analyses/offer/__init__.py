"""Procurement: rules that a program checks, offers with stated risks, and their acceptance."""
