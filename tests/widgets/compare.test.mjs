import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { compareView } from "../../widgets/src/compare_view.js";
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
  for (const [field, value] of [[prompt, "34"], [base, "option-b"]]) {
    field.value = value;
    field.fire("change");
  }
  assert.deepEqual(sent, [{ kind: "choose", prompt: "34" }, { kind: "choose", base: "option-b" }]);
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
  const root = drawn({ ...fixture(), hint: "Ask them together.", prompts: [], columns: [], base: "" });
  assert.equal(texts(root, "am-compare__hint")[0], "Ask them together.");
  assert.ok(root.all("am-compare__columns")[0].hidden);
});
