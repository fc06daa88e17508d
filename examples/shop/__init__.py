"""A shop that leaks one task in a hundred orders: the story of the guide on `handfast.watch`."""
