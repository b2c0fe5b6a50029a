import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { mock, test } from "node:test";

import { liveTurns } from "../../widgets/src/live/live_turns.js";
import { statusText } from "../../widgets/src/views/turn_bar.js";
import { withChanges } from "../../widgets/src/views/turn_state.js";
import { turnView } from "../../widgets/src/views/turn_view.js";
import { inPage, model, outputOf, page } from "./tiny_dom.mjs";

const example = JSON.parse(readFileSync(new URL("../data/turn_view.json", import.meta.url)));
const upTo = (count) => example.told.slice(0, count).reduce(withChanges, new Map());
const status = (phase, more = {}) => ({
  phase,
  about: "",
  waited_s: 0,
  hint: "",
  context: null,
  last: "",
  ...more,
});
const placeOf = (...items) => ({
  items: new Map(items.map((item) => [item.id, item])),
  status: status("answering"),
});
const call = (more) => ({
  id: 1,
  kind: "call",
  line: "f(1)",
  phase: "done",
  said: "✓ 12 ms",
  arguments: [["x", "1"]],
  result: "2",
  cut: 0,
  ...more,
});
const asked = {
  id: 9,
  kind: "question",
  head: "Run?",
  preview: "x = 1",
  does: "Run it",
  edits: "x = 1",
  notice: "",
};
const button = (root, name) => root.all(`am-turn__button--${name}`)[0];
const stopOf = (root) =>
  root.all("am-turn__bar")[0].children.find((child) => child.tag === "button");

/** Make a view in a page; `sent` is what its buttons say. */
function shown(options = {}) {
  mock.timers.reset();
  mock.timers.enable({ apis: ["setTimeout"] });
  const root = page();
  const body = inPage(root);
  body.ownerDocument = root.ownerDocument;
  const sent = [];
  return {
    root,
    sent,
    draw: turnView(root, { send: (message) => sent.push(message), now: () => 0, ...options }),
  };
}

test("what was told step by step is what is told at once", () => {
  const late = withChanges(new Map(), example.whole);
  for (const { status } of late.values()) if (status) status.waited_s = 0;
  assert.deepEqual(upTo(example.told.length), late);
});

test("places that nothing was said of stay the same", () => {
  const before = upTo(example.told.length);
  const after = withChanges(before, { p2: { status: null } });
  assert.equal(after.get("p1"), before.get("p1"));
  assert.notEqual(after.get("p2"), before.get("p2"));
});

test("everything of a turn stands there in its order", () => {
  const { root, draw } = shown();
  draw(withChanges(new Map(), example.whole).get("p1"));
  const kinds = root.all("am-turn__items")[0].children.map((node) => node.className.split(" ")[0]);
  assert.deepEqual(
    kinds,
    ["fold", "text", "text", "fold", "note"].map((kind) => `am-turn__${kind}`),
  );
  assert.equal(root.all("am-turn__text")[0].textContent, "Let me *look* 😀.");
  assert.equal(root.all("am-turn__thoughts")[0].textContent, "First I look at the data.");
});

test("a call has its line, its arguments and its result", () => {
  const { root, draw } = shown();
  draw(withChanges(new Map(), example.whole).get("p1"));
  const fold = root.all("am-turn__fold")[1];
  assert.equal(
    fold.all("am-turn__line")[0].textContent,
    `run_python("df['age'].mean()", head=5)✓ 12 ms`,
  );
  const labels = fold
    .all("am-turn__pre")
    .map((pre) => [pre.getAttribute("aria-label"), pre.textContent]);
  assert.deepEqual(labels, [
    ["code", "df['age'].mean()"],
    ["head", "5"],
    ["result", "38.2"],
  ]);
});

test("what a person opened stays open, and only what changed is drawn", () => {
  const { root, draw } = shown();
  const first = placeOf(call({ phase: "running", said: "" }), { id: 2, kind: "text", text: "a" });
  draw(first);
  const [fold] = root.all("am-turn__fold");
  const [text] = root.all("am-turn__text");
  fold.open = true;
  text.textContent = "untouched";
  draw({ ...first, items: new Map(first.items).set(1, call()) });
  assert.equal(root.all("am-turn__fold")[0], fold);
  assert.ok(fold.open);
  assert.equal(text.textContent, "untouched");
  assert.equal(fold.all("am-turn__said")[0].textContent, "✓ 12 ms");
});

test("what is cut can be asked for", () => {
  const { root, sent, draw } = shown();
  draw(placeOf(call({ cut: 1_000_000 })));
  const more = root.all("am-turn__body")[0].children.at(-1);
  assert.equal(more.textContent, "Show all (1,000,000 more characters)");
  more.fire("click");
  assert.deepEqual(sent, [{ kind: "open", id: 1 }]);
});

for (const [word, name] of [
  ["yes", "yes"],
  ["no", "no"],
  ["always", "always"],
]) {
  test(`the button ${name} answers once`, () => {
    const { root, sent, draw } = shown();
    draw(placeOf(asked));
    button(root, name).fire("click");
    assert.deepEqual(sent, [{ kind: "answer", id: 9, word }]);
    assert.ok(["yes", "no", "always", "edit"].every((each) => button(root, each).disabled));
  });
}

test("what will run is shown as it is, and can be edited", () => {
  const { root, sent, draw } = shown();
  draw(placeOf(asked));
  assert.equal(root.all("am-turn__pre")[0].textContent, "x = 1");
  button(root, "edit").fire("click");
  const [edit] = root.all("am-turn__edit");
  assert.equal(edit.value, "x = 1");
  assert.equal(root.ownerDocument.activeElement, edit);
  assert.ok(button(root, "always").hidden);
  assert.equal(button(root, "yes").textContent, "Run it as edited");
  edit.value = "x = 2";
  button(root, "yes").fire("click");
  assert.deepEqual(sent, [{ kind: "answer", id: 9, word: "edited", text: "x = 2" }]);
});

test("what can't be edited here has no button for it", () => {
  const { root, draw } = shown();
  draw(placeOf({ ...asked, edits: null }));
  assert.ok(button(root, "edit").hidden);
});

test("an answer that can't be taken may be given again", () => {
  const { root, draw } = shown();
  draw(placeOf(asked));
  button(root, "yes").fire("click");
  draw(placeOf({ ...asked, notice: "That is no JSON object." }));
  assert.equal(root.all("am-turn__notice")[0].textContent, "That is no JSON object.");
  assert.ok(!button(root, "yes").disabled);
});

test("an answered question is gone", () => {
  const { root, draw } = shown();
  draw(placeOf(asked));
  draw(placeOf());
  assert.equal(root.all("am-turn__question").length, 0);
});

test("stop is sent once, and says so when nobody hears it", () => {
  let now = 1;
  const { root, sent, draw } = shown({ now: () => now });
  draw(placeOf());
  stopOf(root).fire("click");
  assert.deepEqual(sent, [{ kind: "stop" }]);
  assert.ok(stopOf(root).disabled);
  now += 4_000;
  mock.timers.tick(4_000);
  assert.match(root.all("am-turn__now")[0].textContent, /use its interrupt button/);
  assert.ok(!stopOf(root).disabled);
  draw({ ...placeOf(), status: status("stopping", { about: "fetch" }) });
  assert.equal(root.all("am-turn__now")[0].textContent, "stopping · waiting for fetch");
  assert.equal(stopOf(root).textContent, "Don't wait");
  draw({ ...placeOf(), status: status("ended", { last: "gpt-x · 2.1 s" }) });
  assert.ok(stopOf(root).hidden);
});

test("the wait is said after two seconds, and counted", () => {
  let now = 0;
  const { root, draw } = shown({ now: () => now });
  draw({ ...placeOf(), status: status("waiting", { about: "gpt-x", waited_s: 0.5 }) });
  const [said] = root.all("am-turn__now");
  assert.equal(said.textContent, "");
  for (let second = 0; second < 3; second += 1) {
    now += 1_000;
    mock.timers.tick(1_000);
  }
  assert.equal(said.textContent, "waiting for gpt-x · 3 s");
});

for (const [name, given, says] of [
  ["a tool", status("tools", { about: "fetch" }), "running fetch · 7 s"],
  ["a pause in an answer", status("answering", { about: "gpt-x" }), "waiting for gpt-x · 7 s"],
  ["a question", status("asking"), "waiting for your answer"],
  ["a hint", status("waiting", { hint: "429; attempt 2 in 3 s" }), "429; attempt 2 in 3 s"],
  ["the end", status("ended", { last: "gpt-x" }), "gpt-x"],
]) {
  test(`${name} is said in words`, () => assert.equal(statusText(given, 7.4), says));
}

test("a screen reader hears phases, not seconds", () => {
  const { root, draw } = shown();
  const [spoken] = root.all("am-turn__spoken");
  assert.equal(spoken.getAttribute("aria-live"), "polite");
  draw({ ...placeOf(), status: status("tools", { about: "fetch" }) });
  assert.equal(spoken.textContent, "running fetch");
  draw({ ...placeOf(), status: status("asking") });
  assert.equal(spoken.textContent, "a tool waits for your approval");
});

test("the context is told in words", () => {
  const { root, draw } = shown();
  draw(upTo(3).get("p1"));
  const [meter] = root.all("am-turn__meter");
  assert.equal(
    meter.getAttribute("aria-valuetext"),
    "context 52 %, 66,016 of 128,000 tokens, compacts past 111,616",
  );
  assert.equal(root.all("am-turn__used")[0].style.values.get("width"), "51.6%");
});

test("a place without status has no bar", () => {
  const { root, draw } = shown();
  draw({ ...placeOf(), status: null });
  assert.ok(root.all("am-turn__bar")[0].hidden);
});

test("whatever is told is set as text", () => {
  const { root, draw } = shown();
  const evil = "<img src=x onerror=alert(1)><script>";
  draw(
    placeOf(
      { id: 1, kind: "text", text: evil },
      { id: 2, kind: "reasoning", text: evil },
      call({ id: 3, line: evil, said: evil, arguments: [[evil, evil]], result: evil }),
      { id: 4, kind: "note", text: evil },
      { ...asked, head: evil, preview: evil, does: evil, notice: evil },
    ),
  );
  for (const name of ["text", "thoughts", "code", "said", "pre", "note", "head", "notice"]) {
    assert.ok(root.all(`am-turn__${name}`).at(-1).textContent.includes("<img"), name);
  }
});

const widget = liveTurns(turnView);
const ANCHOR = "agent-magics-1";
const place = (name) => outputOf(`${ANCHOR} am-turn--${name}`);
const isStill = (output) => output.children[0].style.values.get("display") !== "none";

/** Put places into a page with a live model. */
function living(...outputs) {
  mock.timers.reset();
  mock.timers.enable({ apis: ["setTimeout"] });
  const body = inPage(...outputs);
  const kernel = model({ anchor: ANCHOR });
  widget.initialize({ model: kernel });
  return { body, kernel };
}
const told = (n, places) => ({ kind: "told", n, places });
const text = (words, more = {}) => ({
  whole: true,
  items: [{ id: 1, kind: "text", text: words }],
  status: status("answering"),
  ...more,
});
const says = (output) => output.all("am-turn__text").map((each) => each.textContent);

test("a page asks for the places it finds, until it is told of them", () => {
  const { kernel } = living(place("a"));
  mock.timers.tick(1_000);
  assert.ok(kernel.sent.length >= 2);
  assert.deepEqual(kernel.sent[0], { kind: "here", places: ["a"] });
  kernel.tell(told(1, { a: text("Hello") }));
  const count = kernel.sent.length;
  mock.timers.tick(60_000);
  assert.equal(kernel.sent.length, count);
});

test("news of a place that isn't known yet don't end the asking", () => {
  const output = place("a");
  const { kernel } = living(output);
  kernel.tell(told(5, { a: { items: [{ id: 1, add: "lo" }] } }));
  mock.timers.tick(500);
  assert.ok(kernel.sent.length >= 2);
  kernel.tell(told(6, { a: text("Hello") }));
  kernel.tell(told(7, { a: { items: [{ id: 1, add: "!" }] } }));
  assert.deepEqual(says(output), ["Hello!"]);
});

test("a drawn place hides what is saved, a place that nobody knows doesn't", () => {
  const [known, strange] = [place("a"), place("b")];
  const { kernel } = living(known, strange);
  kernel.tell(told(1, { a: text("Hello"), b: null }));
  assert.ok(!isStill(known));
  assert.ok(isStill(strange));
  mock.timers.tick(60_000);
  assert.equal(strange.children.length, 1);
});

test("a kernel that hears nothing while it is busy is said to", () => {
  const output = place("a");
  living(output);
  mock.timers.tick(3_000);
  assert.match(output.textContent, /interrupt button/);
  assert.ok(isStill(output));
});

test("after a gap the whole is asked for", () => {
  const output = place("a");
  const { kernel } = living(output);
  kernel.tell(told(1, { a: text("Hello") }));
  kernel.tell(told(3, { a: { items: [{ id: 1, add: "!" }] } }));
  assert.deepEqual(kernel.sent.at(-1), { kind: "here", places: ["a"] });
  assert.deepEqual(says(output), ["Hello"]);
  kernel.tell(told(4, { a: text("Hello you!") }));
  assert.deepEqual(says(output), ["Hello you!"]);
});

test("an output that is rendered anew goes on with what stood in it", () => {
  const [before, after] = [place("a"), place("a")];
  const { body, kernel } = living(before);
  kernel.tell(told(1, { a: text("Hello") }));
  const root = before.children[1];
  body.replaceChildren(after);
  body.mutated();
  assert.equal(after.children[1], root);
  assert.ok(!isStill(after));
});

test("a question that is drawn is said to be, once, in whichever turn", () => {
  const { kernel } = living(place("a"), place("b"));
  kernel.tell(told(1, { a: { whole: true, items: [asked], status: status("asking") } }));
  kernel.tell(told(2, { a: { status: status("asking", { hint: "x" }) } }));
  kernel.tell(told(3, { b: { whole: true, items: [asked], status: status("asking") } }));
  assert.deepEqual(
    kernel.sent.filter(({ kind }) => kind === "shown"),
    [
      { kind: "shown", id: 9, place: "a" },
      { kind: "shown", id: 9, place: "b" },
    ],
  );
});

test("a question in an output that isn't in the page is not", () => {
  const { kernel } = living();
  kernel.tell(told(1, { a: { whole: true, items: [asked], status: status("asking") } }));
  assert.deepEqual(kernel.sent, []);
});

test("a button names its place", () => {
  const output = place("a");
  const { kernel } = living(output);
  kernel.tell(told(1, { a: text("Hello") }));
  stopOf(output).fire("click");
  assert.deepEqual(kernel.sent.at(-1), { kind: "stop", place: "a" });
});

test("when the kernel is gone the saved output is seen", () => {
  const output = place("a");
  const { kernel } = living(output);
  kernel.tell(told(1, { a: text("Hello") }));
  kernel.fire("comm_live_update");
  assert.equal(output.children.length, 1);
  assert.ok(isStill(output));
  assert.equal(kernel.listeners.size, 0);
  mock.timers.tick(60_000);
  assert.equal(output.children.length, 1);
});
