"""What differs between two sides beside their times: facts of the library, transports, the fingerprint."""
