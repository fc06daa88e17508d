"""`python -m handfast`: the same command as the script `handfast`."""

from handfast.cli import main

if __name__ == "__main__":
    main()
