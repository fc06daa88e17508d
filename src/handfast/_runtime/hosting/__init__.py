"""Resources and async generators that are entered and left in a task of their own."""
