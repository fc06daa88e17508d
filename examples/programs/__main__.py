"""`python -m examples.programs`: how many lines of code each version of each program has."""

from examples.programs.lines import table

if __name__ == "__main__":
    print(table())
