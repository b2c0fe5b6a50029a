import assert from "node:assert/strict";
import { test } from "node:test";

import { liveLedger } from "../../widgets/src/live/live_ledger.js";
import { missing, timeHere } from "../../widgets/src/views/grid_rows.js";
import { ledgerExplorer, saidCount } from "../../widgets/src/views/ledger_explorer.js";
import { inPage, model, outputOf, page } from "./tiny_dom.mjs";

const ROW_PX = 24;
const HEIGHT_PX = 413; // of the grid, for 16 rows

// What of a real page a grid needs beside the tiny DOM: text nodes, and boxes that scroll.
const Node = page().constructor;
let isOut = false; // of the page
Object.defineProperties(Node.prototype, {
  firstChild: { get() { return this.children[0]; } },
  clientHeight: { get() { return isOut ? 0 : HEIGHT_PX; } },
  scrollHeight: { get() { return isOut ? 0 : 27 + Number.parseInt(this.all("am-ledger__space")[0].style.values.get("height") ?? "0"); } },
  scrollTop: {
    get() { return isOut ? 0 : (this.scrolledTo ?? 0); },
    set(px) { if (!isOut) this.scrolledTo = Math.max(0, Math.min(px, this.scrollHeight - HEIGHT_PX)); },
  },
}); // prettier-ignore
Node.prototype.removeAttribute = function removeAttribute(name) {
  this.attributes.delete(name);
};
const createTextNode = (data) => ({
  data, all: () => [], contains: () => false, remove() {}, get textContent() { return this.data; },
}); // prettier-ignore
const frames = [];
globalThis.requestAnimationFrame = (draw) => frames.push(draw);
const resized = [];
globalThis.ResizeObserver = class {
  constructor(heard) {
    resized.push(heard);
  }
  observe() {}
};

/** Let everything happen that is under way: answers, and the frames they ask for. */
async function settle() {
  for (let round = 0; round < 6; round += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    frames.splice(0).forEach((draw) => draw());
  }
}

const rowOf = (seq) => [
  seq,
  1_767_600_000_000 + seq * 1000,
  "default",
  seq % 7,
  "usage",
  `event ${seq}`,
  5,
];

/** A kernel with so many events; `only` lets some seqs through, whatever is asked. */
function kernel(count) {
  const asked = [];
  const told = { count, only: null, held: null };
  const ask = (message) => {
    asked.push(message);
    const answer = () => {
      if (message.kind === "request") return { parts: told.request };
      if (message.kind === "event") {
        const text = message.whole ? "x".repeat(9000) : "x".repeat(4000);
        return { row: rowOf(message.seq), parts: [{ label: "text", text, characters: 9000 }] };
      }
      const seqs = told.only ?? { length: told.count, at: (at) => at + 1 };
      const first = message.first < 0 ? Math.max(0, seqs.length + message.first) : message.first;
      const rows = [];
      for (let at = first; at < Math.min(seqs.length, first + message.count); at += 1)
        rows.push(rowOf(seqs.at(at)));
      return { total: seqs.length, first, rows };
    };
    if (told.held === null) return Promise.resolve(answer());
    return new Promise((resolve) => told.held.push(() => resolve(answer())));
  };
  return { ask, asked, told };
}

const STATE = {
  title: "churn",
  total: 0,
  slots: ["default", "side"],
  kinds: ["usage", "tool_call"],
};

async function shown(count, begins) {
  isOut = false;
  const root = page();
  root.ownerDocument.createTextNode = createTextNode;
  inPage(root);
  const { ask, asked, told } = kernel(count);
  const explorer = ledgerExplorer(root, { ask, begins, state: { ...STATE, total: count } });
  await settle();
  const grid = root.all("am-ledger__grid")[0];
  const at = (name) => root.all(`am-ledger__${name}`)[0];
  const rows = () => root.all("am-ledger__row--event").filter((row) => !row.hidden);
  const active = () => rows().find((row) => row.id === grid.getAttribute("aria-activedescendant"));
  const scroll = (row) => {
    grid.scrollTop = row * ROW_PX;
    grid.fire("scroll");
  };
  return { root, explorer, grid, asked, told, at, rows, active, scroll };
}

const seqOf = (row) => Number(row.all("am-ledger__cell--seq")[0].textContent);
const press = (grid, ...keys) => keys.forEach((key) => grid.fire("keydown", { key }));

test("the newest events are asked for first, and only what is in sight is in the page", async () => {
  const { asked, rows, grid, at } = await shown(100_000);
  assert.deepEqual(
    asked.map(({ first, count }) => [first, count]),
    [[-100, 100]],
  );
  assert.ok(rows().length < 40, `${rows().length}`);
  assert.equal(Math.max(...rows().map(seqOf)), 100_000);
  assert.equal(grid.getAttribute("aria-rowcount"), "100001");
  assert.equal(at("count").textContent, "100,000 events");
});

test("a place far away is asked for by a window around it, a known one by nothing", async () => {
  const { asked, rows, scroll } = await shown(100_000);
  scroll(50_000);
  await settle();
  const { first, count } = asked.at(-1);
  assert.ok(first <= 50_000 && first + count >= 50_017, `${first} + ${count}`);
  assert.ok(rows().map(seqOf).includes(50_001));
  const before = asked.length;
  scroll(50_010);
  await settle();
  assert.equal(asked.length, before);
});

test("rows that aren't told yet are there, and say so", async () => {
  const { told, rows, scroll } = await shown(100_000);
  told.held = [];
  scroll(10);
  await settle();
  assert.ok(rows().length >= 16);
  assert.ok(rows().every((row) => row.textContent === "…"));
});

test("scrolling fast asks for where it ends, not for each place on the way", async () => {
  const { asked, told, rows, scroll } = await shown(100_000);
  told.held = [];
  for (let row = 90_000; row >= 10_000; row -= 1_000) {
    scroll(row);
    await settle();
  }
  assert.equal(asked.length, 2); // the first window, and the one that was on its way
  const held = told.held;
  told.held = null;
  held.forEach((answer) => answer());
  await settle();
  assert.equal(asked.length, 3);
  assert.ok(rows().map(seqOf).includes(10_001));
});

test("an answer to an older filter is dropped", async () => {
  const { root, told, rows, at } = await shown(100_000);
  const [slot, kind] = root.all("am-ledger__field");
  told.held = [];
  kind.value = "tool_call";
  kind.fire("change");
  const late = told.held;
  told.held = null;
  told.only = [3, 9];
  slot.value = "side";
  slot.fire("change");
  await settle();
  told.only = null;
  late.forEach((answer) => answer());
  await settle();
  assert.deepEqual(rows().map(seqOf).sort(), [3, 9]);
  assert.equal(at("count").textContent, "2 of 100,000 events");
});

test("a filter is what its fields say", async () => {
  const { root, asked } = await shown(9, {
    slot: "gone",
    turn: 4,
    kinds: ["usage", "retry"],
    find: "a b",
  });
  assert.deepEqual(asked[0].query, {
    slot: "gone",
    turn: 4,
    kinds: ["usage", "retry"],
    find: "a b",
  });
  const [slot, kind, turn, find] = root.all("am-ledger__field");
  assert.deepEqual(
    [slot.value, kind.value, turn.value, find.value],
    ["gone", "usage,retry", "4", "a b"],
  );
  [slot.value, kind.value, turn.value, find.value] = ["", "", "-2", " x "];
  slot.fire("change");
  await settle();
  assert.deepEqual(asked.at(-1).query, { slot: null, turn: null, kinds: [], find: " x " });
});

for (const [keys, seq] of [
  [["ArrowUp"], 1000],
  [["ArrowUp", "ArrowUp"], 999],
  [["Home"], 1],
  [["Home", "PageDown"], 16],
  [["End", "PageUp"], 985],
  [["End", "ArrowDown"], 1000],
  [["Home", "ArrowUp"], 1],
]) {
  test(`${keys.join(", ")} goes to event ${seq}, which a screen reader is told of`, async () => {
    const { grid, active } = await shown(1000);
    press(grid, ...keys);
    await settle();
    assert.equal(seqOf(active()), seq);
    assert.equal(active().getAttribute("aria-selected"), "true");
    assert.equal(active().getAttribute("aria-rowindex"), String(seq + 1));
  });
}

test("Enter opens a row as soon as it is known, Escape closes it and stays in the grid", async () => {
  const { root, grid, at, told, asked } = await shown(1000);
  told.held = [];
  press(grid, "Home", "Enter");
  await settle();
  assert.ok(at("event").hidden);
  const held = told.held;
  told.held = null;
  held.forEach((answer) => answer());
  await settle();
  assert.equal(asked.at(-1).seq, 1);
  assert.ok(!at("event").hidden);
  assert.match(
    at("facts").textContent,
    /^seq 1 · usage · default · turn 1 · \d{4}-\d\d-\d\d [\d:]{8} · 5 tokens$/,
  );
  assert.equal(at("spoken").textContent, "event 1 is open below");
  press(grid, "Escape");
  assert.ok(at("event").hidden);
  assert.equal(root.ownerDocument.activeElement, grid);
});

test("a click opens its row", async () => {
  const { grid, rows, asked } = await shown(30);
  const row = rows().find((each) => seqOf(each) === 29);
  grid.fire("click", { target: row.children[5] });
  await settle();
  assert.deepEqual([asked.at(-1).kind, asked.at(-1).seq], ["event", 29]);
});

test("a long text is shown whole on demand", async () => {
  const { root, grid, asked } = await shown(30);
  press(grid, "End", "Enter");
  await settle();
  const more = root
    .all("am-ledger__button")
    .find((each) => each.textContent.startsWith("show all"));
  assert.equal(more.textContent, "show all 9,000 characters");
  more.fire("click");
  await settle();
  assert.equal(asked.at(-1).whole, true);
  assert.equal(root.all("am-ledger__text")[0].textContent.length, 9000);
});

test("the request of an event is shown above it, once, or that there is none", async () => {
  const { root, grid, told, at } = await shown(30);
  press(grid, "End", "Enter");
  await settle();
  const ask = root.all("am-ledger__button").find((each) => each.textContent === "request");
  told.request = [{ label: "request as sent", text: "── system ──", characters: 12 }];
  for (let times = 0; times < 2; times += 1) {
    ask.fire("click");
    await settle();
  }
  assert.deepEqual(
    root.all("am-ledger__request").map((each) => each.textContent),
    ["request as sent── system ──"],
  );
  assert.equal(at("spoken").textContent, "request as sent");
  assert.equal(root.all("am-ledger__text").length, 2);
  told.request = [];
  ask.fire("click");
  await settle();
  assert.equal(at("request").textContent, "no request to a model belongs to this event");
});

test("only this turn is a filter", async () => {
  const { root, grid, asked } = await shown(30);
  press(grid, "End", "Enter");
  await settle();
  root
    .all("am-ledger__button")
    .find((each) => each.textContent === "only this turn")
    .fire("click");
  await settle();
  assert.deepEqual(asked.at(-1).query, { slot: "default", turn: 2, kinds: [], find: "" });
});

test("what comes is followed from the end, and leaves alone who looks elsewhere", async () => {
  const { explorer, grid, told, rows, scroll } = await shown(1000);
  told.count = 1200;
  explorer.update({ ...STATE, total: 1200 });
  await settle();
  assert.equal(Math.max(...rows().map(seqOf)), 1200);
  scroll(100);
  await settle();
  told.count = 1300;
  explorer.update({ ...STATE, total: 1300, slots: ["default", "side", "new"] });
  await settle();
  assert.equal(grid.scrollTop, 100 * ROW_PX);
  assert.equal(grid.getAttribute("aria-rowcount"), "1301");
});

test("how much of what comes matches is asked", async () => {
  const { explorer, told, asked, rows, at } = await shown(1000, { kinds: ["usage"] });
  told.only = [...Array(1000).keys(), 1100];
  explorer.update({ ...STATE, total: 1200 });
  await settle();
  assert.equal(asked.at(-1).first, 1000);
  assert.ok(rows().map(seqOf).includes(1100));
  assert.equal(at("count").textContent, "1,001 of 1,200 events");
});

test("a grid that is out of the page draws nothing, and is where it was when it is back", async () => {
  const { explorer, grid, told, rows, scroll } = await shown(1000);
  scroll(400);
  await settle();
  const before = rows().map(seqOf);
  isOut = true;
  grid.fire("scroll");
  told.count = 1010;
  explorer.update({ ...STATE, total: 1010 });
  await settle();
  isOut = false;
  grid.scrolledTo = 0; // as a browser leaves it
  resized.at(-1)();
  await settle();
  assert.equal(grid.scrollTop, 400 * ROW_PX);
  assert.deepEqual(rows().map(seqOf).sort(), before.sort());
});

test("whatever a row says is set as text", async () => {
  const { rows, told, explorer } = await shown(3);
  assert.equal(rows().length, 3); // setting HTML is an error of the tiny DOM
  told.count = 0;
  explorer.update({
    ...STATE,
    title: "<script>",
    slots: ["<img src=x onerror=alert(1)>"],
    total: 3,
  });
});

test("an empty list says so", async () => {
  assert.equal((await shown(0)).at("count").textContent, "0 events");
  const { told, root, at } = await shown(10);
  told.only = [];
  const find = root.all("am-ledger__field")[3];
  find.value = "x";
  root.all("am-ledger__field")[0].fire("change");
  await settle();
  assert.equal(at("count").textContent, "no event matches, of 10");
});

test("keys in the explorer are its own, whatever has the focus", async () => {
  const { root, grid } = await shown(30);
  press(grid, "End", "Enter");
  await settle();
  const focusable = ["grid", "field", "button", "text"].flatMap((name) =>
    root.all(`am-ledger__${name}`),
  );
  assert.ok(focusable.length >= 8);
  assert.ok(focusable.every((node) => node.getAttribute("data-lm-suppress-shortcuts") === "true"));
});

for (const [name, known, first, last, total, wanted] of [
  ["nothing where all is known", [0, 1, 2], 0, 3, 3, null],
  ["what there is of a short list", [], 0, 16, 5, { first: 0, count: 5 }],
  ["a window around the gap", [], 5000, 5016, 9000, { first: 4958, count: 100 }],
  ["no more than there is", [], 80, 96, 100, { first: 38, count: 62 }],
  ["only the gap's neighbourhood", [10, 11, 12], 10, 26, 1000, { first: 0, count: 100 }],
]) {
  test(`missing: ${name}`, () => {
    assert.deepEqual(missing(new Set(known), first, last, total), wanted);
  });
}

test("a count is said in words", () => {
  assert.equal(saidCount(null, 5, true), "waiting for the kernel…");
  assert.equal(saidCount(1, 1, true), "1 event");
  assert.match(timeHere(0), /^19(69|70)-\d\d-\d\d \d\d:\d\d:\d\d$/);
});

/** A live model of one explorer in one output. */
function liveIn(output) {
  const anchor = "agent-magics-ledger";
  output.className = `${anchor} am-ledger--7`;
  const body = inPage(output);
  body.ownerDocument.createTextNode = createTextNode;
  const state = { ...STATE, total: 40, queries: { 7: { find: "tea" } } };
  const live = model({ anchor, state });
  live.widget_manager.kernel.id = "k1";
  const end = liveLedger(ledgerExplorer)().initialize({ model: live });
  return { live, body, end, state };
}

test("an output is drawn live with what it began with, and answers find their way by id", async () => {
  const output = outputOf("x");
  const { live, end } = liveIn(output);
  const [{ id, query }] = live.sent;
  assert.equal(query.find, "tea");
  live.listeners.get("msg:custom")({ id: "another page's", total: 1, first: 0, rows: [rowOf(1)] });
  await settle();
  assert.equal(output.all("am-ledger__count")[0].textContent, "");
  live.listeners.get("msg:custom")({ id, total: 2, first: 0, rows: [rowOf(1), rowOf(2)] });
  await settle();
  assert.equal(output.all("am-ledger__count")[0].textContent, "2 of 40 events");
  end();
  assert.equal(output.all("am-ledger").length, 0);
  assert.equal(live.listeners.size, 0);
});

test("an output that is drawn anew keeps its explorer", async () => {
  const output = outputOf("x");
  const { live, body, end } = liveIn(output);
  const explorer = output.all("am-ledger")[0];
  const anew = outputOf("agent-magics-ledger am-ledger--7");
  anew.ownerDocument = body.ownerDocument;
  body.replaceChildren(anew);
  body.mutated();
  assert.equal(anew.all("am-ledger")[0], explorer);
  assert.equal(live.sent.length, 1);
  end();
});
