"""Two sides, from launches in pairs or sessions of their own. It may know sessions and shrinkage."""
