// Token budget: what fills the next request, by part, against the model's window.
// Draws the session state (agent_magics/notebook/views/session_state.py).

import { BudgetBar } from "./budget_bar.js";
import { STYLE } from "./budget_style.js";
import { makerOf, mount } from "./elements.js";
import { grouped, percentOf } from "./words.js";

/**
 * @import { Budget, Checkpoint } from "./budget_bar.js"
 * @import { Make } from "./elements.js"
 */

/**
 * Draw the budget into `root`, replacing what it drew there before.
 * @param {HTMLElement} root @param {{budget: Budget | null}} state
 */
export function tokenBudget(root, { budget }) {
  const make = makerOf(root.ownerDocument, "am-budget");
  const box = make("div", "box");
  box.className = "am-budget";
  mount(root, STYLE, box);
  if (!budget) {
    box.append(make("p", "head", "Nothing has been asked here yet."));
    return;
  }
  const { bar, legend } = new BudgetBar(make, budget);
  const head = make("p", "head", `${budget.slot} · ${budget.model}`);
  box.append(head, figuresOf(make, budget), bar, legend);
  if (budget.checkpoint) box.append(lastCompaction(make, budget.checkpoint, budget.window));
  const [source, ...others] = budget.notes.filter((note) => note !== budget.spent);
  const threshold = `compacts past ${grouped(budget.threshold)} · ${source}`;
  box.append(...[threshold, ...others].map((note) => make("p", "notes", note)));
}

/** Set what the context holds now beside what was spent so far. @param {Make} make @param {Budget} budget */
function figuresOf(make, { used, window, spent }) {
  const percent = Math.round((100 * used) / Math.max(1, window));
  const rest = ` · ${grouped(used)} of ${grouped(window)} tokens`;
  const soFar = spent ? spent.replace(/^spent in this slot: /, "") : "nothing";
  const figures = make("div", "figures");
  figures.append(
    figureOf(make, "context now ", `${percent} %`, rest),
    figureOf(make, "spent so far ", soFar, ""),
  );
  return figures;
}

/** @param {Make} make @param {string} name @param {string} value @param {string} rest */
function figureOf(make, name, value, rest) {
  const figure = make("span", "figure", name);
  figure.append(make("span", "value", value), make("span", "rest", rest));
  return figure;
}

/** Say what the last compaction did. @param {Checkpoint} last */
export const spokenCompaction = (last) =>
  `last compaction: ${grouped(last.tokens_before)} → ${grouped(last.tokens_after)} tokens` +
  (last.is_degraded ? ", by leaving older turns out" : "");

/**
 * Draw what the last compaction did as two bars on the scale of the window.
 * @param {Make} make @param {Checkpoint} last @param {number} window
 */
function lastCompaction(make, last, window) {
  const box = make("div", "last");
  box.setAttribute("role", "img");
  box.setAttribute("aria-label", spokenCompaction(last));
  const how = last.is_degraded ? ", by leaving older turns out" : "";
  box.append(
    make("span", "title", `last compaction${how}`),
    ...barOf(make, "before", last.tokens_before, window),
    ...barOf(make, "after", last.tokens_after, window),
  );
  return box;
}

/** @param {Make} make @param {string} name @param {number} tokens @param {number} window */
function barOf(make, name, tokens, window) {
  const track = make("span", "track");
  const fill = make("span", "fill");
  fill.className += ` am-budget__fill--${name}`;
  fill.style.setProperty("width", percentOf(tokens, window));
  track.append(fill);
  return [make("span", "when", name), track, make("span", "amount", grouped(tokens))];
}
