"""`Scope`: its states, its tasks, its shutdown."""
