"""``python -m modelodds`` is the command ``modelodds``."""

from modelodds.cli import app

if __name__ == "__main__":
    app(prog_name="modelodds")
