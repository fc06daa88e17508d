"""`@pytest.mark.explore`: async tests under many schedules."""
