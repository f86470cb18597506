"""The number of past alarms against the number expected by chance."""
