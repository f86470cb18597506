"""What is kept of every session: results store, summary, queries, exports."""
