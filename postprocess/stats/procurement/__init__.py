"""Offers and acceptance with stated risks. It may know nothing beside it."""
