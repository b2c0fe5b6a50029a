"""Models, each behind the same port (`core.ports.Provider`).

`presets` is who is known, as rows of data; `adapters` which protocol each of them speaks;
`registry` which provider a model's name means; `prices` what hosted models cost.

`http` is what all servers over HTTP share, `openai_chat` and `anthropic` are one protocol each,
`embedded` serves weights on this machine, `recorded` replays what others answered, `scripted` says
what a script tells it to. Importing this package loads no HTTP client.
"""
