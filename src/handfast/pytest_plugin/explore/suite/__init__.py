"""`--handfast-explore`: the async tests of a suite, as they are, under other schedules."""
