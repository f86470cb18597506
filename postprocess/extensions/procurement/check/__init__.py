"""A folder of launches held against the rules: every violation has a code. It may know the rules."""
