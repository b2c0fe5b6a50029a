"""What all servers over HTTP share: connections, retries, errors, and answers put together.

A protocol subclasses `provider.HTTPProvider` and `assembly.StreamAssembler`, and knows nothing of
connections. Nothing in here knows a protocol.
"""
