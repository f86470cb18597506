"""From launches of a healthy machine to references, and the upkeep of references."""
