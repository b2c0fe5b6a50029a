import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { slotTabs } from "../../widgets/src/views/slot_tabs.js";
import { page } from "./tiny_dom.mjs";

const fixture = () =>
  JSON.parse(readFileSync(new URL("../data/session_state.json", import.meta.url)));
const tabsOf = (root) => root.all("am-tabs__tab");
const listOf = (root) => root.all("am-tabs__list")[0];
const buttonOf = (root, label) =>
  root.all("am-tabs__button").find((button) => button.textContent === label);
const formOf = (root) => root.all("am-tabs__form")[0];
const noticeOf = (root) => root.all("am-tabs__notice")[0];

/** Draw, and keep what is sent. */
function drawn(state = fixture()) {
  const root = page();
  const sent = [];
  const send = (message) => sent.push(message);
  slotTabs(root, state, { send });
  return { root, sent, again: (next, notice) => slotTabs(root, next, { send, notice }) };
}

test("a tab says name, mode, counts and where it came from", () => {
  const root = page();
  slotTabs(root, fixture());
  const spoken = tabsOf(root).map((tab) => tab.getAttribute("aria-label"));
  assert.deepEqual(spoken, [
    "default, full, 12 turns, 8,412 tokens",
    "option-a, full, 4 turns, 9,960 tokens, from default at turn 9, running",
    "option-b, focused 6, 1 turn, 9,120 tokens, from default at turn 9, scripted:other",
  ]);
});

test("only the current tab is selected and reached by Tab", () => {
  const root = page();
  slotTabs(root, fixture());
  assert.deepEqual(
    tabsOf(root).map((tab) => tab.getAttribute("aria-selected")),
    ["false", "true", "false"],
  );
  assert.deepEqual(
    tabsOf(root).map((tab) => tab.getAttribute("tabindex")),
    ["-1", "0", "-1"],
  );
});

test("a click asks for another slot, and not for the current one", () => {
  const root = page();
  const asked = [];
  slotTabs(root, fixture(), { send: ({ slot }) => asked.push(slot) });
  tabsOf(root)[1].fire("click");
  tabsOf(root)[2].fire("click");
  assert.deepEqual(asked, ["option-b"]);
});

for (const [key, from, to] of [
  ["ArrowDown", 1, 2],
  ["ArrowDown", 2, 2],
  ["ArrowUp", 1, 0],
  ["ArrowRight", 0, 1],
  ["ArrowLeft", 2, 0],
  ["Home", 2, 0],
  ["End", 0, 2],
]) {
  test(`${key} moves the focus from tab ${from} to tab ${to}`, () => {
    const root = page();
    slotTabs(root, fixture());
    tabsOf(root)[from].focus();
    tabsOf(root)[from].fire("focus");
    root.all("am-tabs__list")[0].fire("keydown", { key });
    assert.equal(root.ownerDocument.activeElement, tabsOf(root)[to]);
    assert.equal(tabsOf(root)[to].getAttribute("tabindex"), "0");
  });
}

test("drawing again keeps the focus on the same slot", () => {
  const root = page();
  slotTabs(root, fixture());
  tabsOf(root)[2].focus();
  slotTabs(root, fixture());
  assert.equal(root.ownerDocument.activeElement, tabsOf(root)[2]);
});

test("drawing one view leaves the focus in another", () => {
  const [here, there] = [page(), page()];
  there.ownerDocument = here.ownerDocument;
  slotTabs(here, fixture());
  slotTabs(there, fixture());
  tabsOf(here)[2].focus();
  slotTabs(there, fixture());
  assert.equal(here.ownerDocument.activeElement, tabsOf(here)[2]);
});

test("names are set as text whatever they hold", () => {
  const root = page();
  const state = fixture();
  state.slots[0].id = "<img src=x onerror=alert(1)>";
  state.title = "<script>";
  slotTabs(root, state);
  assert.equal(root.all("am-tabs__id")[0].textContent, "<img src=x onerror=alert(1)>");
  assert.ok(root.all("am-tabs__head")[0].textContent.startsWith("<script>"));
});

test("a tree says how deep each slot stands", () => {
  const { root } = drawn();
  assert.equal(listOf(root).getAttribute("role"), "tree");
  assert.deepEqual(
    tabsOf(root).map((tab) => tab.getAttribute("aria-level")),
    ["1", "2", "2"],
  );
});

for (const [label, value, message] of [
  ["Derive here…", "what-if", { kind: "derive", slot: "option-a", name: "what-if" }],
  ["Rename…", " better ", { kind: "rename", slot: "option-a", name: "better" }],
]) {
  test(`${label} asks for a name in the view and sends it`, () => {
    const { root, sent } = drawn();
    buttonOf(root, label).fire("click");
    const field = root.all("am-tabs__field")[0];
    assert.equal(root.ownerDocument.activeElement, field);
    field.value = value;
    formOf(root).fire("keydown", { key: "Enter" });
    assert.deepEqual(sent, [message]);
    assert.ok(formOf(root).hidden);
  });
}

test("a form that was refused comes back as it was sent", () => {
  const state = fixture();
  const { root, again } = drawn(state);
  buttonOf(root, "Derive here…").fire("click");
  root.all("am-tabs__field")[0].value = "a b";
  formOf(root).fire("keydown", { key: "Enter" });
  again(state, { number: 1, text: "A blank can't be in a name.", is_refused: true });
  assert.ok(!formOf(root).hidden);
  assert.equal(root.all("am-tabs__field")[0].value, "a b");
  formOf(root).fire("keydown", { key: "Escape" });
  again(state, { number: 2, text: "Refused elsewhere.", is_refused: true });
  assert.ok(formOf(root).hidden);
});

test("after a delete the buttons are about the current slot", () => {
  const state = fixture();
  const { root, again } = drawn(state);
  tabsOf(root)[2].focus();
  tabsOf(root)[2].fire("focus");
  again({ ...state, slots: state.slots.filter(({ id }) => id !== "option-b") });
  assert.equal(root.all("am-tabs__target")[0].textContent, "option-a");
});

test("a name that is missing sends nothing and is asked for on", () => {
  const { root, sent } = drawn();
  buttonOf(root, "Derive here…").fire("click");
  formOf(root).fire("keydown", { key: "Enter" });
  assert.deepEqual(sent, []);
  assert.ok(!formOf(root).hidden);
});

for (const [mode, count, message] of [
  ["readonly", "", { kind: "mode", slot: "option-a", mode: "readonly" }],
  ["focused", "4", { kind: "mode", slot: "option-a", mode: "focused", count: 4 }],
]) {
  test(`a mode is chosen: ${mode}`, () => {
    const { root, sent } = drawn();
    buttonOf(root, "Mode…").fire("click");
    const [select, number] = root.all("am-tabs__field");
    select.value = mode;
    select.fire("change");
    assert.equal(number.hidden, mode !== "focused");
    number.value = count;
    formOf(root).fire("keydown", { key: "Enter" });
    assert.deepEqual(sent, [message]);
  });
}

test("Delete asks first; Escape leaves the slot and gives the focus back", () => {
  const { root, sent } = drawn();
  tabsOf(root)[2].focus();
  tabsOf(root)[2].fire("focus");
  listOf(root).fire("keydown", { key: "Delete" });
  assert.equal(formOf(root).getAttribute("aria-label"), "Delete option-b? Its log is kept.");
  formOf(root).fire("keydown", { key: "Escape" });
  assert.deepEqual(sent, []);
  assert.equal(root.ownerDocument.activeElement, tabsOf(root)[2]);
  listOf(root).fire("keydown", { key: "Delete" });
  formOf(root).fire("keydown", { key: "Enter" });
  assert.deepEqual(sent, [{ kind: "delete", slot: "option-b" }]);
});

test("F2 renames, Enter goes there", () => {
  const { root, sent } = drawn();
  tabsOf(root)[2].fire("focus");
  listOf(root).fire("keydown", { key: "F2" });
  assert.equal(root.all("am-tabs__field")[0].value, "option-b");
  listOf(root).fire("keydown", { key: "Enter" });
  assert.deepEqual(sent, [{ kind: "switch", slot: "option-b" }]);
});

test("what was done is said in a live region, and a delete can be taken back", () => {
  const { root, sent, again } = drawn();
  assert.equal(noticeOf(root).getAttribute("role"), "status");
  const region = noticeOf(root);
  again(fixture(), { number: 1, text: "option-b is deleted", is_refused: false, undo: "slot-7" });
  assert.equal(noticeOf(root), region);
  assert.equal(region.textContent, "option-b is deleted");
  buttonOf(root, "Undo").fire("click");
  assert.deepEqual(sent, [{ kind: "undo", uid: "slot-7" }]);
  again(fixture(), { number: 2, text: "option-b is back", is_refused: false, undo: null });
  assert.ok(buttonOf(root, "Undo").hidden);
});

test("what is typed outlasts a change of the state", () => {
  const { root, again } = drawn();
  buttonOf(root, "Derive here…").fire("click");
  const field = root.all("am-tabs__field")[0];
  field.value = "half a na";
  again({ ...fixture(), title: "new title" });
  assert.equal(root.all("am-tabs__field")[0], field);
  assert.equal(root.ownerDocument.activeElement, field);
});

test("where the focused slot is gone its neighbour has the focus", () => {
  const { root, again } = drawn();
  tabsOf(root)[2].focus();
  const state = fixture();
  state.slots.pop();
  again(state);
  assert.equal(root.ownerDocument.activeElement, tabsOf(root)[1]);
});

test("a session that another kernel writes can't be changed here", () => {
  const { root } = drawn({ ...fixture(), is_readonly: true });
  assert.ok(root.all("am-tabs__bar")[0].hidden);
  listOf(root).fire("keydown", { key: "Delete" });
  assert.ok(formOf(root).hidden);
});

test("a tab that didn't change keeps its nodes", () => {
  const { root, again } = drawn();
  const before = tabsOf(root).map((tab) => tab.children[0]);
  const state = fixture();
  state.slots[1].tokens += 1;
  again(state);
  assert.deepEqual(
    tabsOf(root).map((tab, i) => tab.children[0] === before[i]),
    [true, false, true],
  );
});
