"""Make references from launches of a healthy machine, and maintain them."""
