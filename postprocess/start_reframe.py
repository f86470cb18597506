"""ReFrame as ``python -m`` from the root: there, checks and sites can import what they share."""

from reframe.frontend.cli import main

if __name__ == "__main__":
    main()
