"""`pytest --handfast`: which test leaks what."""
