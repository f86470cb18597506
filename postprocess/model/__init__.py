"""The terms of the domain as data classes: case, plan, launch, measurement, reference, verdict, session."""
