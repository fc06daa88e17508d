"""A trace as a timeline for the terminal and as an HTML page."""
