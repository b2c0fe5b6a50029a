import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { live } from "../../widgets/src/live/live.js";
import { withDelta } from "../../widgets/src/live/state.js";
import { slotTabs } from "../../widgets/src/views/slot_tabs.js";
import { spokenName } from "../../widgets/src/views/slot_tree.js";
import { tokenBudget } from "../../widgets/src/views/token_budget.js";
import { inPage, model, outputOf, page } from "./tiny_dom.mjs";

const fixture = () =>
  JSON.parse(readFileSync(new URL("../data/session_state.json", import.meta.url)));
const tabsOf = (root) => root.all("am-tabs__tab");

const ANCHOR = "agent-magics-1";
const kernelModel = (values = {}) =>
  model({ state: fixture(), notice: "", anchor: ANCHOR, ...values });
const isStill = (output) => output.children[0].style.values.get("display") !== "none";

test("a slot that was derived before any turn names none", () => {
  const slot = { ...fixture().slots[1], forked_at_turn: 0 };
  assert.ok(spokenName(slot).includes("from default"));
  assert.ok(!spokenName(slot).includes("at turn"));
});

test("a live view sends the switch and draws again when the kernel answers", () => {
  const output = outputOf(ANCHOR);
  inPage(output, outputOf("another"));
  const kernel = kernelModel();
  live(slotTabs)().initialize({ model: kernel });
  tabsOf(output)[2].fire("click");
  assert.deepEqual(kernel.sent.slice(1), [{ kind: "switch", slot: "option-b" }]);
  kernel.set("notice", { number: 1, text: "That slot is gone.", is_refused: true });
  assert.equal(output.all("am-tabs__notice")[0].textContent, "That slot is gone.");
  assert.ok(!isStill(output));
});

test("a live view is drawn in a layout too, and follows there until it is taken out", async () => {
  inPage();
  const kernel = kernelModel();
  const widget = live(slotTabs)();
  widget.initialize({ model: kernel });
  const el = page();
  const takenOut = widget.render({ el });
  assert.equal(tabsOf(el).length, 3);
  tabsOf(el)[2].fire("click");
  assert.deepEqual(kernel.sent.at(-1), { kind: "switch", slot: "option-b" });
  kernel.set("state", { ...fixture(), slots: [] });
  assert.equal(tabsOf(el).length, 0);
  takenOut();
  kernel.set("state", fixture());
  assert.equal(tabsOf(el).length, 0);
});

test("a live view draws in its own outputs only, those that come later too", () => {
  const [later, another] = [outputOf(ANCHOR), outputOf("another")];
  const body = inPage(another);
  live(slotTabs)().initialize({ model: kernelModel() });
  body.append(later);
  body.mutated();
  assert.equal(tabsOf(later).length, 3);
  assert.equal(tabsOf(another).length, 0);
  assert.ok(isStill(another));
});

test("an output that was out of the page is drawn anew, the others are left alone", () => {
  const [kept, scrolled] = [outputOf(ANCHOR), outputOf(ANCHOR)];
  const body = inPage(kept, scrolled);
  const kernel = kernelModel();
  live(slotTabs)().initialize({ model: kernel });
  body.replaceChildren(kept);
  kernel.set("state", { ...fixture(), slots: [] });
  const before = kept.all("am-tabs__tab").length;
  body.append(scrolled);
  body.mutated();
  assert.equal(tabsOf(scrolled).length, 0);
  assert.equal(kept.all("am-tabs__tab").length, before);
});

for (const [name, ends] of [
  ["restarts", (kernel) => kernel.fire("comm_live_update")],
  [
    "is another one",
    (kernel, body) => ((kernel.widget_manager.kernel = { id: "k2" }), body.mutated()),
  ],
  ["was shut down", (kernel, body) => ((kernel.widget_manager.kernel = null), body.mutated())],
  [
    "has no manager any more",
    (kernel, body) => ((kernel.widget_manager.isDisposed = true), body.mutated()),
  ],
]) {
  test(`a kernel that ${name} leaves the static view`, () => {
    const output = outputOf(ANCHOR);
    const body = inPage(output);
    const kernel = kernelModel();
    live(slotTabs)().initialize({ model: kernel });
    ends(kernel, body);
    assert.equal(output.children.length, 1);
    assert.ok(isStill(output));
    assert.equal(kernel.listeners.size, 0);
    body.mutated();
    assert.equal(tabsOf(output).length, 0);
  });
}

for (const { name, before, delta, after } of JSON.parse(
  readFileSync(new URL("../data/state_deltas.json", import.meta.url)),
)) {
  test(`a delta is withDelta: ${name}`, () => {
    const kept = JSON.stringify(before);
    assert.deepEqual(withDelta(before, delta), after);
    assert.equal(JSON.stringify(before), kept);
  });
}

const told = (kernel, number, title) =>
  kernel.fire("msg:custom", { kind: "delta", number, delta: { set: { title } } });
const headOf = (output) => output.all("am-tabs__head")[0].textContent.split(" · ")[0];

test("deltas are withDelta in their order, those that were in the state already aren't", () => {
  const output = outputOf(ANCHOR);
  inPage(output);
  const kernel = kernelModel({ number: 4 });
  live(slotTabs)().initialize({ model: kernel });
  told(kernel, 4, "old");
  assert.equal(headOf(output), "churn");
  told(kernel, 5, "five");
  told(kernel, 6, "six");
  assert.equal(headOf(output), "six");
});

test("where a delta is missing the state is asked for, and taken whole", () => {
  const output = outputOf(ANCHOR);
  inPage(output);
  const kernel = kernelModel({ number: 4 });
  live(slotTabs)().initialize({ model: kernel });
  told(kernel, 6, "six");
  assert.equal(headOf(output), "churn");
  assert.deepEqual(kernel.sent.at(-1), { kind: "whole", number: 4 });
  kernel.set("number", 6);
  kernel.set("state", { ...fixture(), title: "whole" });
  told(kernel, 7, "seven");
  assert.equal(headOf(output), "seven");
});

test("a whole state that is the model's own first one is taken, for its number", () => {
  const output = outputOf(ANCHOR);
  inPage(output);
  const kernel = kernelModel({ number: 0 });
  live(slotTabs)().initialize({ model: kernel });
  told(kernel, 1, "one");
  told(kernel, 3, "three");
  kernel.set("number", 4); // Backbone tells nothing of a state that equals the one that it has
  assert.equal(headOf(output), "churn");
  told(kernel, 5, "five");
  assert.equal(headOf(output), "five");
});

test("the folds of a dashboard around an output keep their keys", () => {
  const [output, other] = [outputOf(ANCHOR), outputOf("another")];
  const dashboard = page();
  dashboard.className = "am-dashboard";
  const [fold, stranger] = ["summary", "summary"].map((tag) =>
    dashboard.ownerDocument.createElement(tag),
  );
  dashboard.append(fold, output);
  inPage(dashboard, stranger, other);
  live(slotTabs)().initialize({ model: kernelModel() });
  assert.equal(fold.getAttribute("data-lm-suppress-shortcuts"), "true");
  assert.equal(stranger.getAttribute("data-lm-suppress-shortcuts"), null);
});

test("the bar holds a piece a part, as wide as its share of the window", () => {
  const root = page();
  tokenBudget(root, fixture());
  const widths = root.all("am-budget__part").map((piece) => piece.style.values.get("width"));
  assert.deepEqual(widths, ["0.94%", "2.59%", "1.44%", "32.03%", "14.41%", "0.17%"]);
  assert.equal(root.all("am-budget__mark")[0].style.values.get("left"), "87.20%");
});

test("the last compaction is a picture of before and after, on the scale of the window", () => {
  const root = page();
  tokenBudget(root, fixture());
  const widths = root.all("am-budget__fill").map((fill) => fill.style.values.get("width"));
  assert.deepEqual(widths, ["87.81%", "19.45%"]);
  assert.deepEqual(
    root.all("am-budget__amount").map((node) => node.textContent),
    ["112,400", "24,900"],
  );
  const spoken = root.all("am-budget__last")[0].getAttribute("aria-label");
  assert.equal(spoken, "last compaction: 112,400 → 24,900 tokens");
});

test("a slot that was never compacted has no such picture", () => {
  const root = page();
  const state = fixture();
  state.budget.checkpoint = null;
  tokenBudget(root, state);
  assert.equal(root.all("am-budget__last").length, 0);
});

for (const [name, used, free, reserve] of [
  [
    "free up to the threshold, then the reserve",
    66_016,
    ["35.63%", "free before the threshold45,600"],
    ["12.80%", "reserve16,384"],
  ],
  [
    "what is left of the reserve",
    120_000,
    ["0.00%", "free before the threshold0"],
    ["6.25%", "left of the reserve8,000"],
  ],
  [
    "nothing over its window",
    200_000,
    ["0.00%", "free before the threshold0"],
    ["0.00%", "left of the reserve0"],
  ],
]) {
  test(`behind its parts the bar shows ${name}, as wide as the legend says`, () => {
    const root = page();
    const state = fixture();
    state.budget.used = used;
    state.budget.free = Math.max(0, state.budget.threshold - used);
    tokenBudget(root, state);
    const items = root
      .all("am-budget__item")
      .map((item) => item.textContent)
      .slice(-2);
    const widths = ["free", "reserve"].map((part) =>
      root.all(`am-budget__${part}`)[0].style.values.get("width"),
    );
    assert.deepEqual(
      [
        [widths[0], items[0]],
        [widths[1], items[1]],
      ],
      [free, reserve],
    );
  });
}

test("parts, free and reserve fill the bar", () => {
  const root = page();
  tokenBudget(root, fixture());
  const pieces = ["part", "free", "reserve"].flatMap((part) => root.all(`am-budget__${part}`));
  const width = pieces.reduce((sum, piece) => sum + parseFloat(piece.style.values.get("width")), 0);
  assert.ok(Math.abs(width - 100) < 0.05, `${width}`);
});

test("the legend names every part and what is free", () => {
  const root = page();
  tokenBudget(root, fixture());
  assert.deepEqual(
    root.all("am-budget__item").map((item) => item.textContent),
    [
      "system1,204",
      "tools3,310",
      "summary1,840",
      "history41,002",
      "tool results18,440",
      "your message220",
      "free before the threshold45,600",
      "reserve16,384",
    ],
  );
});

test("the meter is told in words", () => {
  const root = page();
  tokenBudget(root, fixture());
  const meter = root.all("am-budget__bar")[0];
  assert.equal(meter.getAttribute("role"), "meter");
  assert.equal(meter.getAttribute("aria-valuenow"), "66016");
  assert.match(
    meter.getAttribute("aria-valuetext"),
    /^66,016 of 128,000 tokens used, compacts past 111,616/,
  );
});

test("the last compaction stands in the notes", () => {
  const root = page();
  tokenBudget(root, fixture());
  assert.deepEqual(
    root.all("am-budget__notes").map((note) => note.textContent),
    [
      "compacts past 111,616 · estimated (× 1.03, learnt from this model) · the last request was measured: 65,210",
      "reserve: 16,384 · newest turns kept as they are: 20,000",
      "last compaction (auto): 112,400 → 24,900 tokens, 31 turns behind it · undo: %compact --undo",
    ],
  );
});

test("what the context holds now stands beside what was spent so far", () => {
  const root = page();
  tokenBudget(root, fixture());
  assert.deepEqual(
    root.all("am-budget__figure").map((figure) => figure.textContent),
    [
      "context now 52 % · 66,016 of 128,000 tokens",
      "spent so far 1.24 M in (71 % cached), 88 k out, $3.10",
    ],
  );
});

test("what a compaction would free is a strip under what is used, and said", () => {
  const root = page();
  const state = fixture();
  state.budget.frees = 41_016;
  tokenBudget(root, state);
  const strip = root.all("am-budget__frees")[0].style.values;
  assert.deepEqual([strip.get("left"), strip.get("width")], ["19.53%", "32.04%"]);
  assert.equal(
    root.all("am-budget__item").at(-1).textContent,
    "a compaction would free about41,016",
  );
  assert.match(
    root.all("am-budget__bar")[0].getAttribute("aria-valuetext"),
    /would free about 41,016$/,
  );
});

test("an answer that streams is a part of its own", () => {
  const root = page();
  const state = fixture();
  state.budget.parts.push({ name: "answer", tokens: 640 });
  tokenBudget(root, state);
  assert.equal(root.all("am-budget__part--answer").length, 1);
  assert.ok(root.all("am-budget__item").some((item) => item.textContent === "answer so far640"));
});

test("a budget over its window stays inside the bar", () => {
  const root = page();
  const state = fixture();
  state.budget.used = 200_000;
  state.budget.parts = [{ name: "history", tokens: 200_000 }];
  tokenBudget(root, state);
  assert.equal(root.all("am-budget__part")[0].style.values.get("width"), "100.00%");
  assert.equal(root.all("am-budget__bar")[0].getAttribute("aria-valuenow"), "128000");
});

test("without a budget a sentence stands there", () => {
  const root = page();
  tokenBudget(root, { budget: null });
  assert.equal(root.all("am-budget__head")[0].textContent, "Nothing has been asked here yet.");
});
