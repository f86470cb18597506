"""What happens around a measurement, in storeys: each package imports from those below it only."""
