"""What people read of one session: terminal table, Markdown and HTML report."""
