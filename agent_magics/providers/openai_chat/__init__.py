"""OpenAI's Chat Completions, as each of the servers that speak it wants them.

`provider.OpenAICompatible` is the face; `servers` has those that tell facts of their own.
"""
