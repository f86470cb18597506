"""What goes beyond one case of one night, a folder each, from command to page; they do not know each other."""
