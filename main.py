"""Run nexi from a checkout: `python main.py "question"`."""

from nexi.__main__ import main

if __name__ == "__main__":
    main()
