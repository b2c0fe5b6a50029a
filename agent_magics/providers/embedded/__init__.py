"""Models whose weights lie on this machine, served by a llama.cpp process of ours.

`provider.EmbeddedProvider` is the face, `llamacpp.LlamaCpp` serves files that are named as models,
`weights` knows where the demo model's weights are. Importing this package loads no HTTP client.
"""
