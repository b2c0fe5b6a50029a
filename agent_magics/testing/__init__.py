"""Contract suites for what may be plugged in: run them with pytest over your own.

    class TestMyStore(SessionStorageContract):
        def make_store(self) -> SessionStorage:
            return MyStore()

    class TestMyMemories(MemoryStorageContract):
        def make_store(self) -> MemoryStorage:
            return MyMemories()

    class TestMyModels(ProviderContract):
        def make_provider(self) -> Provider:
            return MyModels()

Every test makes one of its own. Nothing here imports pytest.
"""

from agent_magics.testing.memories import MemoryStorageContract, memory
from agent_magics.testing.providers import ProviderContract
from agent_magics.testing.sessions import (
    NOON,
    SessionStorageContract,
    assistant,
    checkpoint,
    loaded,
    new,
    owner,
    refused,
    slot,
    user,
)

__all__ = [
    "NOON",
    "MemoryStorageContract",
    "ProviderContract",
    "SessionStorageContract",
    "assistant",
    "checkpoint",
    "loaded",
    "memory",
    "new",
    "owner",
    "refused",
    "slot",
    "user",
]
