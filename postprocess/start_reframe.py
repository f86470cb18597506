"""ReFrame, started as ``python -m postprocess.start_reframe`` from the root, so that checks and sites can import."""

from reframe.frontend.cli import main

if __name__ == "__main__":
    main()
