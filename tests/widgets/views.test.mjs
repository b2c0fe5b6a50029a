import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import * as budgetModule from "../../widgets/src/token_budget.js";
import * as tabsModule from "../../widgets/src/slot_tabs.js";
import { model, page } from "./tiny_dom.mjs";

const fixture = () => JSON.parse(readFileSync(new URL("../data/session_state.json", import.meta.url)));
const tabsOf = (root) => root.all("am-tabs__tab");

test("a tab says name, mode, counts and where it came from", () => {
  const root = page();
  tabsModule.slotTabs(root, fixture());
  const spoken = tabsOf(root).map((tab) => tab.getAttribute("aria-label"));
  assert.deepEqual(spoken, [
    "default, full, 12 turns, 8,412 tokens",
    "option-a, full, 4 turns, 9,960 tokens, from default at turn 9, running",
    "option-b, focused 6, 1 turn, 9,120 tokens, from default at turn 9, scripted:other",
  ]);
});

test("only the current tab is selected and reached by Tab", () => {
  const root = page();
  tabsModule.slotTabs(root, fixture());
  assert.deepEqual(tabsOf(root).map((tab) => tab.getAttribute("aria-selected")), ["false", "true", "false"]);
  assert.deepEqual(tabsOf(root).map((tab) => tab.getAttribute("tabindex")), ["-1", "0", "-1"]);
});

test("a click asks for another slot, and not for the current one", () => {
  const root = page();
  const asked = [];
  tabsModule.slotTabs(root, fixture(), { onSwitch: (id) => asked.push(id) });
  tabsOf(root)[1].fire("click");
  tabsOf(root)[2].fire("click");
  assert.deepEqual(asked, ["option-b"]);
});

for (const [key, from, to] of [
  ["ArrowRight", 1, 2],
  ["ArrowLeft", 0, 2],
  ["ArrowDown", 2, 0],
  ["Home", 2, 0],
  ["End", 0, 2],
]) {
  test(`${key} moves the focus from tab ${from} to tab ${to}`, () => {
    const root = page();
    tabsModule.slotTabs(root, fixture());
    tabsOf(root)[from].focus();
    root.all("am-tabs__list")[0].fire("keydown", { key });
    assert.equal(root.ownerDocument.activeElement, tabsOf(root)[to]);
    assert.equal(tabsOf(root)[to].getAttribute("tabindex"), "0");
  });
}

test("drawing again keeps the focus on the same slot", () => {
  const root = page();
  tabsModule.slotTabs(root, fixture());
  tabsOf(root)[2].focus();
  tabsModule.slotTabs(root, fixture());
  assert.equal(root.ownerDocument.activeElement, tabsOf(root)[2]);
});

test("drawing one view leaves the focus in another", () => {
  const [here, there] = [page(), page()];
  there.ownerDocument = here.ownerDocument;
  tabsModule.slotTabs(here, fixture());
  tabsModule.slotTabs(there, fixture());
  tabsOf(here)[2].focus();
  tabsModule.slotTabs(there, fixture());
  assert.equal(here.ownerDocument.activeElement, tabsOf(here)[2]);
});

test("names are set as text whatever they hold", () => {
  const root = page();
  const state = fixture();
  state.slots[0].id = "<img src=x onerror=alert(1)>";
  state.title = "<script>";
  tabsModule.slotTabs(root, state);
  assert.equal(root.all("am-tabs__id")[0].textContent, "<img src=x onerror=alert(1)>");
  assert.ok(root.all("am-tabs__head")[0].textContent.startsWith("<script>"));
});

test("the widget sends the switch and draws again when the kernel answers", () => {
  const el = page();
  const kernel = model({ state: fixture(), notice: "" });
  const leave = tabsModule.default.render({ model: kernel, el });
  tabsOf(el)[2].fire("click");
  assert.deepEqual(kernel.sent, [{ kind: "switch", slot: "option-b" }]);
  kernel.set("notice", "That slot is gone.");
  assert.equal(el.all("am-tabs__notice")[0].textContent, "That slot is gone.");
  leave();
  assert.equal(kernel.listeners.size, 0);
});

test("the bar holds a piece a part, as wide as its share of the window", () => {
  const root = page();
  budgetModule.tokenBudget(root, fixture());
  const widths = root.all("am-budget__part").map((piece) => piece.style.values.get("width"));
  assert.deepEqual(widths, ["0.94%", "2.59%", "1.44%", "32.03%", "14.41%", "0.17%"]);
  assert.equal(root.all("am-budget__mark")[0].style.values.get("left"), "87.20%");
});

test("the legend names every part and what is free", () => {
  const root = page();
  budgetModule.tokenBudget(root, fixture());
  assert.deepEqual(root.all("am-budget__item").map((item) => item.textContent), [
    "system1,204",
    "tools3,310",
    "summary1,840",
    "history41,002",
    "tool results18,440",
    "your message220",
    "free45,600",
  ]);
});

test("the meter is told in words", () => {
  const root = page();
  budgetModule.tokenBudget(root, fixture());
  const meter = root.all("am-budget__bar")[0];
  assert.equal(meter.getAttribute("role"), "meter");
  assert.equal(meter.getAttribute("aria-valuenow"), "66016");
  assert.match(meter.getAttribute("aria-valuetext"), /^66,016 of 128,000 tokens used, compacts past 111,616/);
});

test("the last compaction stands in the notes", () => {
  const root = page();
  budgetModule.tokenBudget(root, fixture());
  assert.deepEqual(root.all("am-budget__notes").map((note) => note.textContent), [
    "compacts past 111,616 · estimated (× 1.03, learnt from this model) · the last request was measured: 65,210",
    "last compaction (auto): 112,400 → 24,900 tokens, 31 turns behind it · undo: %compact --undo",
  ]);
});

test("a budget over its window stays inside the bar", () => {
  const root = page();
  const state = fixture();
  state.budget.used = 200_000;
  state.budget.parts = [{ name: "history", tokens: 200_000 }];
  budgetModule.tokenBudget(root, state);
  assert.equal(root.all("am-budget__part")[0].style.values.get("width"), "100.00%");
  assert.equal(root.all("am-budget__bar")[0].getAttribute("aria-valuenow"), "128000");
});

test("without a budget a sentence stands there", () => {
  const root = page();
  budgetModule.tokenBudget(root, { budget: null });
  assert.equal(root.all("am-budget__head")[0].textContent, "Nothing has been asked here yet.");
});

for (const [name, module] of Object.entries({ slot_tabs: tabsModule, token_budget: budgetModule })) {
  test(`${name} can be loaded as a blob by anywidget`, () => {
    const source = readFileSync(new URL(`../../widgets/src/${name}.js`, import.meta.url), "utf8");
    assert.doesNotMatch(source, /^\s*import\b/m);
    assert.equal(typeof module.default.render, "function");
    assert.ok(!("render" in module));
  });
}
