"""What every session begins and ends with: context, clock, store, report. It may know no kind of session."""
