"""`stress`: many runs, cancelled at random points, and what grows."""
