"""What a bidder commits to, and the form for it: page, CSV, spreadsheet. It may know rules and check."""
