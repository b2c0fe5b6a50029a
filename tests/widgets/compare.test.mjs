import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { compareView } from "../../widgets/src/views/compare_view.js";
import { spokenPlaces } from "../../widgets/src/views/compare_words.js";
import { page } from "./tiny_dom.mjs";

const fixture = () => JSON.parse(readFileSync(new URL("../data/comparison.json", import.meta.url)));
const drawn = (state = fixture(), options = {}) => {
  const root = page();
  compareView(root, state, options);
  return root;
};
const texts = (root, name) => root.all(name).map((node) => node.textContent);

test("each slot has a column with its answer whole, and what differs marked", () => {
  const root = drawn();
  assert.deepEqual(texts(root, "am-compare__slot"), ["default", "option-a", "option-b"]);
  assert.deepEqual(texts(root, "am-compare__text"), [
    "",
    "Use tenure, because it predicts churn.",
    "Use price, because it predicts churn well.",
  ]);
  assert.deepEqual(texts(root, "am-compare__differs"), ["tenure", "price", "well"]);
  assert.deepEqual(texts(root, "am-compare__alike"), ["", "", "78 % in common with option-a"]);
});

test("a slot that wasn't asked says so, and has no text", () => {
  const root = drawn();
  assert.equal(texts(root, "am-compare__facts")[0], "not asked");
  assert.ok(root.all("am-compare__text")[0].hidden);
});

test("a choice goes to the kernel", () => {
  const sent = [];
  const root = drawn(fixture(), { send: (message) => sent.push(message) });
  const [prompt, base] = root.all("am-compare__field");
  for (const [field, value] of [
    [prompt, "34"],
    [base, "option-b"],
  ]) {
    field.value = value;
    field.fire("change");
  }
  assert.deepEqual(sent, [
    { kind: "choose", prompt: "34" },
    { kind: "choose", base: "option-b" },
  ]);
});

test("what can be compared with is what was asked, and one choice alone is none", () => {
  const [prompt, base] = drawn().all("am-compare__label");
  assert.deepEqual(texts(base, "am-compare__option"), ["option-a", "option-b"]);
  assert.ok(!prompt.hidden);
  const state = fixture();
  state.prompts.length = 1;
  assert.ok(drawn(state).all("am-compare__label")[0].hidden);
});

test("a column that didn't change is left alone, one that did keeps its place and its focus", () => {
  const before = fixture();
  const root = drawn(before);
  const [, ours, theirs] = root.all("am-compare__text");
  const kept = ours.children[0];
  theirs.focus();
  const column = { ...before.columns[2], pieces: [{ text: "More.", differs: true }] };
  compareView(root, { ...before, columns: [before.columns[0], before.columns[1], column] });
  assert.equal(root.all("am-compare__text")[1].children[0], kept);
  assert.equal(root.all("am-compare__text")[2], theirs);
  assert.equal(theirs.textContent, "More.");
  assert.equal(root.ownerDocument.activeElement, theirs);
});

test("marks can be taken away", () => {
  const root = drawn();
  const [box] = root.all("am-compare");
  const [check] = root.all("am-compare__check");
  check.checked = false;
  check.fire("change");
  assert.ok(box.className.includes("am-compare--plain"));
});

test("where nothing compares only the hint stands", () => {
  const root = drawn({
    ...fixture(),
    hint: "Ask them together.",
    prompts: [],
    columns: [],
    base: "",
  });
  assert.equal(texts(root, "am-compare__hint")[0], "Ask them together.");
  assert.ok(root.all("am-compare__columns")[0].hidden);
});

/** Choose from a list as its arrow keys do. */
const choose = (field, value) => {
  field.value = value;
  field.fire("change");
};

test("a choice stays in its list until the kernel has answered it", () => {
  const state = fixture();
  const root = drawn(state);
  const [, base] = root.all("am-compare__field");
  choose(base, "option-b");
  compareView(root, { ...state, note: "a turn streams" });
  assert.equal(base.value, "option-b");
  compareView(root, { ...state, base: "option-b" });
  compareView(root, { ...state, base: "option-a" }); // chosen elsewhere, later
  assert.equal(base.value, "option-a");
});

test("of two choices in a row the first one's answer doesn't take the second away", () => {
  const state = fixture();
  state.columns[0].status = "complete";
  const root = drawn(state);
  const [, base] = root.all("am-compare__field");
  choose(base, "option-b");
  choose(base, "default");
  compareView(root, { ...state, base: "option-b" });
  assert.equal(base.value, "default");
  compareView(root, { ...state, base: "default" });
  assert.equal(base.value, "default");
});

test("a choice that came to nothing doesn't stay", () => {
  const state = fixture();
  state.columns[0].status = "complete";
  const root = drawn(state);
  const [, base] = root.all("am-compare__field");
  choose(base, "option-b");
  compareView(root, { ...state, base: "default" });
  assert.equal(base.value, "default");
  choose(base, "option-b");
  compareView(root, { ...state, base: "default", columns: state.columns.slice(0, 2) });
  assert.equal(base.value, "default");
});

test("what a person chose is said once it is shown, and nothing else is", () => {
  const state = fixture();
  const root = drawn(state);
  const [spoken] = root.all("am-compare__spoken");
  assert.equal(spoken.getAttribute("role"), "status");
  compareView(root, { ...state, note: "news" });
  assert.equal(spoken.textContent, "");
  const [prompt, base] = root.all("am-compare__field");
  const [none, ours, theirs] = state.columns;
  const turned = {
    ...state,
    base: "option-b",
    columns: [none, { ...ours, alike: 78 }, { ...theirs, alike: null }],
  };
  choose(base, "option-b");
  assert.equal(spoken.textContent, "");
  compareView(root, turned);
  assert.equal(spoken.textContent, "compared with option-b, 78 % in common");
  choose(prompt, "34");
  compareView(root, { ...turned, chosen: "34" });
  assert.equal(spoken.textContent, "And which next?, compared with option-b, 78 % in common");
});

test("an answer's description tells where it differs, while that is marked", () => {
  const root = drawn();
  const [, , text] = root.all("am-compare__text");
  const [, , places] = root.all("am-compare__places");
  assert.equal(text.getAttribute("aria-describedby"), places.getAttribute("id"));
  assert.equal(places.textContent, "differs in 2 places: price; well");
  const [check] = root.all("am-compare__check");
  check.checked = false;
  check.fire("change");
  assert.equal(places.textContent, "");
});

test("of many places, and of long ones, the beginning is told", () => {
  const many = Array.from({ length: 7 }, (_, at) => ({ text: `${at}`.repeat(80), differs: true }));
  const told = spokenPlaces(many);
  assert.ok(told.startsWith(`differs in 7 places: ${"0".repeat(60)}…; 1`));
  assert.ok(told.endsWith("; and 2 more"));
});

test("what was left out is said, and that a share isn't known", () => {
  const state = fixture();
  Object.assign(state.columns[2], { alike: null, by_lines: true });
  const root = drawn({ ...state, note: "12 of 15 are shown." });
  assert.equal(texts(root, "am-compare__note")[0], "12 of 15 are shown.");
  assert.equal(
    texts(root, "am-compare__alike")[2],
    "compared with option-a by lines and sentences",
  );
  assert.ok(drawn().all("am-compare__note")[0].hidden);
});
