"""Sessions and memories that live as long as the process: `store` and `memories`.

The same rules as a ledger on disk, kept by the same contract suites; nothing is durable.
"""
