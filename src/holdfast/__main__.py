"""`python -m holdfast`: the same command as the script `holdfast`."""

from holdfast.cli import main

if __name__ == "__main__":
    main()
