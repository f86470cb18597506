"""The commands that answer a question beyond one case of one night."""
