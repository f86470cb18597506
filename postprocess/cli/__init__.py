"""Options that commands share, and the way from options to a request."""
