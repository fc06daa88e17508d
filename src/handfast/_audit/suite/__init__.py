"""The tests of a project, run in its own interpreter by a child process."""

# The variable that names the file with what the plugin has to do. Here, and not in the plugin: that
# imports pytest, which the program that starts the child may not have.
VARIABLE = "HANDFAST_AUDIT"
