// The items of a turn: its answer, its reasoning, its tool calls and what is noted beside them.

import { buttonOf, readable } from "./elements.js";
import { counted, grouped } from "./words.js";

/**
 * @import { Make } from "./elements.js"
 * @import { CallItem, TextItem } from "./turn_state.js"
 */

/**
 * What a view is given: `markdown` renders a text, safely; `now` is a clock of milliseconds.
 * @typedef {{send: (message: object) => void, now?: () => number,
 *   markdown?: (node: HTMLElement, text: string) => void}} Options
 * @typedef {Options & {make: Make}} Context
 * @typedef {{node: HTMLElement, update: (item: any) => void}} Part draws the item that it was made for
 */

/** @param {Context} context @returns {Part} */
export function text({ make, markdown }) {
  const node = make("div", "text");
  node.setAttribute("dir", "auto");
  return {
    node,
    update: (/** @type {TextItem} */ item) => {
      if (markdown === undefined) node.textContent = item.text;
      else markdown(node, item.text);
    },
  };
}

/** @param {Context} context @returns {Part} */
export function reasoning({ make }) {
  const node = make("details", "fold");
  const line = make("summary", "line", "Reasoning");
  const said = make("span", "said");
  const body = make("div", "thoughts");
  body.setAttribute("dir", "auto");
  body.setAttribute("tabindex", "0");
  line.append(said);
  node.append(line, body);
  return {
    node,
    update: (/** @type {TextItem} */ item) => {
      body.textContent = item.text;
      said.textContent = counted(item.text.trim().split(/\s+/).length, "word");
    },
  };
}

/** @param {Context} context @returns {Part} */
export function noteLine({ make }) {
  const node = make("p", "note");
  node.setAttribute("dir", "auto");
  return { node, update: (/** @type {TextItem} */ item) => void (node.textContent = item.text) };
}

/** @param {Context} context @returns {Part} */
export function toolCall(context) {
  const { make } = context;
  const node = make("details", "fold");
  const line = make("summary", "line");
  const code = make("code", "code");
  const said = make("span", "said");
  const body = make("div", "body");
  line.append(code, said);
  node.append(line, body);
  return {
    node,
    update: (/** @type {CallItem} */ item) => {
      code.textContent = item.line;
      said.className = `am-turn__said am-turn__said--${item.phase}`;
      said.textContent = item.phase === "running" ? "running …" : item.said;
      body.replaceChildren(...contentOf(context, item));
    },
  };
}

/** @param {Context} context @param {CallItem} item */
function contentOf({ make, send }, item) {
  /** @param {string} label @param {string} said */
  const part = (label, said) => {
    const pre = readable(make("pre", "pre", said), label);
    pre.setAttribute("dir", "auto");
    return [make("p", "label", label), pre];
  };
  /** @type {HTMLElement[]} */
  const parts = item.arguments.flatMap(([name, value]) => part(name, value));
  if (item.phase !== "running") parts.push(...part("result", item.result || "(nothing)"));
  if (item.cut > 0) {
    const label = `Show all (${grouped(item.cut)} more characters)`;
    parts.push(buttonOf(make, label, () => send({ kind: "open", id: item.id })));
  }
  return parts;
}
