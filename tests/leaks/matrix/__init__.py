"""Small programs that leave something behind, and programs that are right, under each runner."""
