"""How the agent lives in IPython and Jupyter."""
