"""What every session storage must do, and the values that its tests are told with."""

from __future__ import annotations

from collections.abc import Awaitable
from datetime import UTC, datetime, timedelta

from agent_magics.core.errors import (
    AgentError,
    CompactionStale,
    InputValidation,
    SessionLocked,
    SessionNotFound,
    StorageError,
)
from agent_magics.core.events import (
    AssistantMessage,
    Draft,
    LedgerEvent,
    Metadata,
    NewEvent,
    Payload,
    ToolAnswered,
    ToolCalled,
    UserMessage,
)
from agent_magics.core.messages import Text, ToolOutput
from agent_magics.core.ports import Change, Lease, Owner, SessionState, SessionStorage
from agent_magics.core.slots import Checkpoint, Derived, Focused, Slot, SlotConfig
from agent_magics.testing.stores import StoreContract

NOON = datetime(2030, 5, 17, 12, 0, 0, 123456, tzinfo=UTC)


def owner(pid: int = 4711, *, host: str = "here") -> Owner:
    """Make an owner that came at noon."""
    return Owner(pid=pid, host=host, since=NOON)


def user(text: str) -> UserMessage:
    """Make a user message."""
    return UserMessage(content=(Text(text=text),))


def assistant(text: str) -> AssistantMessage:
    """Make a complete assistant message."""
    return AssistantMessage(content=(Text(text=text),))


def new(payload: Payload, *, minute: int = 0, turn: str = "t1", slot: str = "u1") -> NewEvent:
    """Make an event of some minutes after noon, of 7 tokens."""
    created_at = NOON + timedelta(minutes=minute)
    return NewEvent(payload=payload, created_at=created_at, slot_uid=slot, turn_id=turn, tokens=7)


def slot(uid: str = "u1", slot_id: str = "default", *, generation: int = 0) -> Slot:
    """Make a slot."""
    return Slot(
        uid=uid, slot_id=slot_id, config=SlotConfig(), created_at=NOON, generation=generation
    )


def checkpoint(checkpoint_id: str = "c1", *, uid: str = "u1", generation: int = 1) -> Checkpoint:
    """Make a checkpoint of a slot."""
    return Checkpoint(
        checkpoint_id=checkpoint_id, slot_uid=uid, generation=generation,
        parent_checkpoint_id=None, summary="so far", rendered="[Context summary] so far",
        first_retained_seq=3, source_max_seq=2, reason="manual", provider="scripted",
        model="one", tokens_before=900, tokens_after=90, degraded=False, created_at=NOON,
    )  # fmt: skip


async def loaded(store: SessionStorage, session_id: str = "s") -> SessionState:
    """Load a session that must be there."""
    state = await store.load(session_id)
    assert state is not None, f"{session_id} is not in the store"
    return state


async def refused(kind: type[AgentError], work: Awaitable[object]) -> str:
    """Await `work`, which must raise `kind` itself; give its message."""
    try:
        await work
    except kind as error:
        return error.message
    raise AssertionError(f"{kind.__name__} was not raised")


class SessionStorageContract(StoreContract[SessionStorage]):
    """What every `core.ports.SessionStorage` must do. Override `make_store`."""

    # Opening and closing

    def test_unknown_session_is_not_found(self) -> None:
        """Opening what isn't there says so and makes nothing."""

        async def scenario(store: SessionStorage) -> None:
            await refused(SessionNotFound, store.acquire("s", owner()))
            assert await store.load("s") is None

        self.run(scenario)

    def test_new_session_is_empty(self) -> None:
        """A created session has its times from its owner and nothing else."""

        async def scenario(store: SessionStorage) -> None:
            lease = await store.acquire("s", owner(), create=True)
            state = await loaded(store)
            assert state.row.created_at == state.row.updated_at == NOON
            assert (state.row.title, state.row.message_count) == (None, 0)
            assert state.row.epoch == lease.epoch
            assert (state.slots, state.events, state.checkpoints, state.drafts) == ((),) * 4

        self.run(scenario)

    def test_second_owner_is_refused_and_told_who(self) -> None:
        """While one has a session open, the next reads who and since when."""

        async def scenario(store: SessionStorage) -> None:
            await store.acquire("s", owner(), create=True)
            said = await refused(SessionLocked, store.acquire("s", owner(12)))
            assert "pid 4711 on this machine, since " in said
            said = await refused(SessionLocked, store.acquire("s", owner(12, host="there")))
            assert "pid 4711 on here" in said

        self.run(scenario)

    def test_released_session_opens_again(self) -> None:
        """A lease that was given back is no obstacle, and no right to write."""

        async def scenario(store: SessionStorage) -> None:
            first = await store.acquire("s", owner(), create=True)
            await store.release(first)
            await refused(StorageError, store.commit(first, Change(title="late")))
            second = await store.acquire("s", owner(12))
            assert second.epoch > first.epoch
            await store.release(first)  # an old lease ends nothing
            await store.commit(second, Change(title="mine"))
            assert (await loaded(store)).row.title == "mine"

        self.run(scenario)

    def test_taking_ends_the_old_lease(self) -> None:
        """After a take the old owner's writes fail and change nothing; the new one's go on."""

        async def scenario(store: SessionStorage) -> None:
            old = await store.acquire("s", owner(), create=True)
            taken = await store.acquire("s", owner(12), take=True)
            change = Change(events=(new(user("late")),), title="late")
            assert "pid 12" in await refused(SessionLocked, store.commit(old, change))
            draft = Draft(slot_uid="u1", turn_id="t1", text="late")
            await refused(SessionLocked, store.save_draft(old, draft))
            await store.release(old)
            await store.commit(taken, Change(events=(new(user("on")),)))
            state = await loaded(store)
            assert [event.payload for event in state.events] == [user("on")]
            assert (state.row.title, state.drafts) == (None, ())
            await refused(SessionLocked, store.acquire("s", owner(13)))

        self.run(scenario)

    # Writing

    def test_seqs_rise_by_one(self) -> None:
        """Events get their numbers in order, over all commits of a session."""

        async def scenario(store: SessionStorage) -> None:
            lease = await store.acquire("s", owner(), create=True)
            first = await store.commit(lease, Change(events=(new(user("a")), new(user("b")))))
            second = await store.commit(lease, Change(events=(new(user("c")),)))
            assert [event.seq for event in (*first, *second)] == [1, 2, 3]
            assert (await loaded(store)).events == (*first, *second)

        self.run(scenario)

    def test_everything_comes_back(self) -> None:
        """Events, slots, checkpoint, current slot and title are read as they were written."""

        async def scenario(store: SessionStorage) -> None:
            lease = await store.acquire("s", owner(), create=True)
            config = SlotConfig(
                mode=Focused(recent_messages=3), source=Derived(parent_id="default"), tools=("f",)
            )
            child = Slot(
                uid="u2", slot_id="größe", config=config, created_at=NOON, parent_uid="u1",
                fork_seq=2, focus_seq=1, generation=4, checkpoint_id="c1", deleted=True,
            )  # fmt: skip
            call = ToolCalled(call_id="x", tool_name="f", arguments={"a": [1, None, "ü"]})
            result = ToolAnswered(call_id="x", tool_name="f", output=ToolOutput(content="4"))
            note = Metadata(key="context_compaction", value={"checkpoint": "c1"})
            change = Change(
                events=tuple(new(payload) for payload in (user("q"), call, result, note)),
                slots=(slot(), child), checkpoint=checkpoint(), current_slot_uid="u2", title="T",
            )  # fmt: skip
            written = await store.commit(lease, change)
            state = await loaded(store)
            assert state.events == written
            assert [event.payload for event in written] == [user("q"), call, result, note]
            assert written[0].created_at == NOON
            assert {one.uid: one for one in state.slots} == {"u1": slot(), "u2": child}
            assert state.checkpoints == (checkpoint(),)
            assert (state.row.current_slot_uid, state.row.title) == ("u2", "T")

        self.run(scenario)

    def test_slots_are_replaced_by_uid(self) -> None:
        """A slot that is written again takes the place of the one before; a name may repeat."""

        async def scenario(store: SessionStorage) -> None:
            lease = await store.acquire("s", owner(), create=True)
            await store.commit(lease, Change(slots=(slot(), slot("u2"))))
            await store.commit(lease, Change(slots=(slot("u2", "other", generation=5),)))
            state = await loaded(store)
            assert sorted(one.uid for one in state.slots) == ["u1", "u2"]
            assert slot("u2", "other", generation=5) in state.slots

        self.run(scenario)

    def test_stale_generation_changes_nothing(self) -> None:
        """A compare-and-swap that loses writes no event, no slot, no checkpoint."""

        async def scenario(store: SessionStorage) -> None:
            lease = await store.acquire("s", owner(), create=True)
            await store.commit(lease, Change(slots=(slot(generation=2),)))
            before = await loaded(store)
            change = Change(
                events=(new(user("x")),), slots=(slot(generation=3),), checkpoint=checkpoint(),
                expected_generation={"u1": 1}, title="x",
            )  # fmt: skip
            assert "default" in await refused(CompactionStale, store.commit(lease, change))
            missing = Change(events=(new(user("x")),), expected_generation={"u9": 0})
            await refused(CompactionStale, store.commit(lease, missing))
            assert await loaded(store) == before

        self.run(scenario)

    def test_expected_generation_lets_the_swap_through(self) -> None:
        """The first of two equal swaps wins, the second is stale."""

        async def scenario(store: SessionStorage) -> None:
            lease = await store.acquire("s", owner(), create=True)
            await store.commit(lease, Change(slots=(slot(),)))
            swap = Change(
                slots=(slot(generation=1),), checkpoint=checkpoint(), expected_generation={"u1": 0}
            )
            await store.commit(lease, swap)
            await refused(CompactionStale, store.commit(lease, swap))
            assert [one.generation for one in (await loaded(store)).slots] == [1]

        self.run(scenario)

    def test_row_follows_the_events(self) -> None:
        """`message_count` counts user and assistant messages; `updated_at` is the last event's."""

        async def scenario(store: SessionStorage) -> None:
            lease = await store.acquire("s", owner(), create=True)
            call = ToolCalled(call_id="x", tool_name="f", arguments={})
            events = (new(user("q"), minute=2), new(call, minute=3), new(assistant("a"), minute=5))
            await store.commit(lease, Change(events=events))
            await store.commit(
                lease, Change(title="later title", events=(new(user("r"), minute=4),))
            )
            row, said = (await loaded(store)).row, 3
            assert row.message_count == said
            assert row.updated_at == NOON + timedelta(minutes=5)
            assert (await store.list_sessions()).sessions[0].message_count == said

        self.run(scenario)

    def test_what_cannot_be_stored_is_cleaned(self) -> None:
        """Broken characters become visible ones, in what is given back as in what is stored."""

        async def scenario(store: SessionStorage) -> None:
            lease = await store.acquire("s", owner(), create=True)
            broken = "a\ud800b \r\n \u2028 \u202e"
            call = ToolCalled(call_id="x", tool_name="f", arguments={"n": 10**30, "t": broken})
            change = Change(events=(new(user(broken)), new(call)), title=broken)
            written = await store.commit(lease, change)
            state = await loaded(store)
            assert state.events == written
            assert written[0].payload == user("a\ufffdb \r\n \u2028 \u202e")
            assert state.row.title == "a\ufffdb \r\n \u2028 \u202e"

        self.run(scenario)

    # Drafts

    def test_draft_is_overwritten_and_ended(self) -> None:
        """One draft a turn; the change that ends it removes it, and no other."""

        async def scenario(store: SessionStorage) -> None:
            lease = await store.acquire("s", owner(), create=True)
            for text in ("On", "Once"):
                await store.save_draft(lease, Draft(slot_uid="u1", turn_id="t1", text=text))
            other = Draft(slot_uid="u1", turn_id="t2", text="Two")
            await store.save_draft(lease, other)
            mine = Draft(slot_uid="u1", turn_id="t1", text="Once")
            assert set((await loaded(store)).drafts) == {mine, other}
            await store.commit(
                lease, Change(events=(new(assistant("Once.")),), ends_draft=("u1", "t1"))
            )
            assert (await loaded(store)).drafts == (other,)

        self.run(scenario)

    # Many sessions

    def test_sessions_do_not_mix(self) -> None:
        """The same slot uids, turns and seqs in two sessions are different things."""

        async def scenario(store: SessionStorage) -> None:
            texts = {"a": "from a", "b": "from b"}
            for name, text in texts.items():
                lease = await store.acquire(name, owner(), create=True)
                await store.commit(lease, Change(events=(new(user(text)),), slots=(slot(),)))
            for name, text in texts.items():
                state = await loaded(store, name)
                assert [(event.seq, event.payload) for event in state.events] == [(1, user(text))]

        self.run(scenario)

    def test_pages_go_from_the_newest_to_the_oldest(self) -> None:
        """Pages hold every session once, also those of the same time."""

        async def scenario(store: SessionStorage) -> None:
            minutes = {"a": 1, "b": 5, "c": 5, "d.e": 3, "f": 0}
            for name, minute in minutes.items():
                lease = await store.acquire(name, owner(), create=True)
                await store.commit(lease, Change(events=(new(user("x"), minute=minute),)))
            names: list[str] = []
            cursor: str | None = None
            for _ in range(3):
                page = await store.list_sessions(cursor, 2)
                names += [summary.session_id for summary in page.sessions]
                cursor = page.next_cursor
            assert names == ["b", "c", "d.e", "a", "f"]
            assert cursor is None

        self.run(scenario)

    def test_odd_cursors_and_limits_are_refused(self) -> None:
        """A cursor that no page gave, or an empty page, is the caller's mistake."""

        async def scenario(store: SessionStorage) -> None:
            await refused(InputValidation, store.list_sessions("nonsense"))
            await refused(InputValidation, store.list_sessions(None, 0))

        self.run(scenario)

    def test_search_looks_at_ids_and_titles(self) -> None:
        """An id is found by its beginning, a title by any part, in any case."""

        async def scenario(store: SessionStorage) -> None:
            titles = {"churn-1": "Why customers leave", "x2": "ÄRGER im churn", "y3": None}
            for name, title in titles.items():
                lease = await store.acquire(name, owner(), create=True)
                await store.commit(lease, Change(title=title))

            async def found(query: str) -> set[str]:
                return {summary.session_id for summary in await store.find_sessions(query)}

            assert await found("CHURN") == {"churn-1", "x2"}
            assert await found("ärger") == {"x2"}
            assert await found("3") == set()
            assert await found("100%_") == set()

        self.run(scenario)

    def test_deleting_removes_all_of_one_session(self) -> None:
        """A deleted session is gone with its rows; another stays; an unknown one is no error."""

        async def scenario(store: SessionStorage) -> None:
            leases: dict[str, Lease] = {}
            for name in ("a", "b"):
                leases[name] = await store.acquire(name, owner(), create=True)
                await store.commit(leases[name], Change(events=(new(user(name)),), slots=(slot(),)))
            await refused(SessionLocked, store.delete_session("a"))
            await store.release(leases["a"])
            await store.delete_session("a")
            await store.delete_session("never was")
            assert await store.load("a") is None
            assert [one.session_id for one in (await store.list_sessions()).sessions] == ["b"]
            again = await store.acquire("a", owner(), create=True)
            assert (await loaded(store, "a")).events == ()
            await refused(AgentError, store.commit(leases["a"], Change(title="ghost")))
            written: tuple[LedgerEvent, ...] = await store.commit(
                again, Change(events=(new(user("new")),))
            )
            assert written[0].seq == 1

        self.run(scenario)

    def test_bad_session_ids_are_refused(self) -> None:
        """A blank or broken id is the caller's mistake; any other text is a name."""

        async def scenario(store: SessionStorage) -> None:
            for bad in ("", "  ", "a\ud800", "a\0b"):
                await refused(InputValidation, store.acquire(bad, owner(), create=True))
            odd = "../größe 'x' %/\u202e"
            lease = await store.acquire(odd, owner(), create=True)
            await store.commit(lease, Change(title="odd"))
            assert (await loaded(store, odd)).row.title == "odd"

        self.run(scenario)
