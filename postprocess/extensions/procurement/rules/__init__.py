"""The rules of a procurement, and what they ask for on one machine. It may know no offer."""
