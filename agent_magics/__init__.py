"""An agent that lives in your notebook."""

__version__ = "0.1.0"
