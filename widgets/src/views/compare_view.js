// Compare view: what several slots answered to the same prompt, side by side, differences marked.
// Draws ComparisonState (agent_magics/notebook/views/comparison/comparison.py).

import { ChoiceField } from "./compare_choice.js";
import { AnswerColumn } from "./compare_column.js";
import { STYLE } from "./compare_style.js";
import { spokenChoice } from "./compare_words.js";
import { keepKeysIn, makerOf, mount, readable } from "./elements.js";

/** @import { Column, Comparison } from "./compare_words.js" */

/** What was drawn into a root. @type {WeakMap<HTMLElement, CompareView>} */
const DRAWN = new WeakMap();

/** The comparison in one root: made once, so that focus and scrolling outlast each change. */
class CompareView {
  /** @param {HTMLElement} root */
  constructor(root) {
    const make = makerOf(root.ownerDocument, "am-compare");
    this.make = make;
    /** @type {(message: object) => void} */
    this.send = () => {};
    /** By slot. @type {Map<string, AnswerColumn>} */
    this.columns = new Map();
    this.marks = true;
    this.hint = make("p", "hint");
    this.prompt = readable(make("div", "prompt"), "What was asked");
    this.prompts = new ChoiceField(make, "prompt", (prompt) => {
      this.send({ kind: "choose", prompt });
    });
    this.bases = new ChoiceField(make, "compared with", (base) => {
      this.send({ kind: "choose", base });
    });
    this.bar = make("div", "bar");
    this.bar.append(this.prompts.node, this.bases.node, this.newMarking());
    this.grid = make("div", "columns");
    this.note = make("p", "note");
    this.spoken = make("div", "spoken");
    this.spoken.setAttribute("role", "status");
    this.box = make("div", "box");
    this.box.className = "am-compare";
    keepKeysIn(this.box);
    this.box.append(this.hint, this.prompt, this.bar, this.grid, this.note, this.spoken);
    mount(root, STYLE, this.box);
  }

  newMarking() {
    const label = this.make("label", "label");
    const check = this.make("input", "check");
    check.setAttribute("type", "checkbox");
    check.checked = true;
    check.addEventListener("change", () => this.mark(check.checked));
    label.append(check, this.make("span", "name", "mark what differs"));
    return label;
  }

  /** @param {boolean} marks */
  mark(marks) {
    this.marks = marks;
    this.box.className = marks ? "am-compare" : "am-compare am-compare--plain";
    for (const column of this.columns.values()) column.describe(marks);
  }

  /** @param {Comparison} state @param {(message: object) => void} send */
  update(state, send) {
    this.send = send;
    const isEmpty = state.hint !== "";
    this.hint.textContent = state.hint;
    this.hint.hidden = !isEmpty;
    this.note.textContent = state.note;
    this.note.hidden = state.note === "";
    for (const node of [this.prompt, this.bar, this.grid]) node.hidden = isEmpty;
    if (isEmpty) return;
    if (this.prompt.textContent !== state.prompt) this.prompt.textContent = state.prompt;
    this.offer(state);
    this.drawColumns(state);
  }

  /** @param {Comparison} state */
  offer(state) {
    const isPrompt = this.prompts.offer(state.prompts, state.chosen);
    const answered = state.columns.filter(({ status }) => status !== "not asked");
    const bases = answered.map(({ id }) => ({ id, label: id }));
    const isBase = this.bases.offer(bases, state.base);
    if (isPrompt || isBase) this.spoken.textContent = spokenChoice(state, isPrompt);
  }

  /** @param {Comparison} state */
  drawColumns({ columns, base }) {
    const nodes = columns.map((column) => this.drawColumn(column, base));
    const known = new Set(columns.map(({ id }) => id));
    for (const id of [...this.columns.keys()]) if (!known.has(id)) this.columns.delete(id);
    const there = [...this.grid.children];
    const isSame = nodes.length === there.length && nodes.every((node, at) => node === there[at]);
    if (!isSame) this.grid.replaceChildren(...nodes);
  }

  /** @param {Column} column @param {string} base */
  drawColumn(column, base) {
    const drawn = this.columns.get(column.id) ?? new AnswerColumn(this.make, column.id);
    this.columns.set(column.id, drawn);
    drawn.draw(column, base, this.marks);
    return drawn.node;
  }
}

/**
 * Draw a comparison into `root`, or bring what it drew there up to date. `send(message)` is called
 * for what a person chooses.
 * @param {HTMLElement} root @param {Comparison} state
 * @param {{send?: (message: object) => void}} [options]
 */
export function compareView(root, state, { send = () => {} } = {}) {
  const view = DRAWN.get(root) ?? new CompareView(root);
  DRAWN.set(root, view);
  view.update(state, send);
}
