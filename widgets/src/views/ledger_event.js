// One event of a ledger, opened: its facts, its content, and the request that it belongs to.

import { buttonOf, keepKeys, readable } from "./elements.js";
import { timeHere } from "./grid_rows.js";
import { grouped } from "./words.js";

/**
 * @import { Make } from "./elements.js"
 * @import { Row } from "./grid_rows.js"
 */

/**
 * @typedef {{label: string, text: string, characters: number}} Part
 * @typedef {{row: Row | null, parts: Part[]}} Event
 * @typedef {{make: Make, ask: (message: object) => Promise<any>, closed: () => void,
 *   only: (slot: string, turn: number) => void}} EventOptions  `only`: show that turn's events alone
 */

const NO_REQUEST = "no request to a model belongs to this event";
const MOST_CHARACTERS = 1_000_000; // as the kernel sends of one part

/** What stands below the grid for the event that a person opened. */
export class OpenedEvent {
  /** @param {EventOptions} options */
  constructor({ make, ask, closed, only }) {
    this.make = make;
    this.ask = ask;
    this.closed = closed;
    this.only = only;
    this.node = make("div", "event");
    this.node.setAttribute("role", "region");
    this.node.hidden = true;
    this.node.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      this.close();
    });
    this.spoken = make("p", "spoken");
    this.spoken.setAttribute("role", "status");
  }

  /** @param {number} seq @param {boolean} whole */
  open(seq, whole) {
    void this.ask({ kind: "event", seq, whole }).then((event) => this.show(event));
  }

  /** Close what is open, and tell whether anything was. */
  close() {
    if (this.node.hidden) return false;
    this.node.hidden = true;
    this.node.replaceChildren();
    this.spoken.textContent = "";
    this.closed();
    return true;
  }

  /** @param {Event} event */
  show({ row, parts }) {
    if (row === null) return;
    const [seq] = row;
    this.node.setAttribute("aria-label", `Event ${seq}`);
    this.node.hidden = false;
    this.node.replaceChildren(this.barOf(row), ...parts.flatMap((part) => this.textOf(part, seq)));
    this.spoken.textContent = `event ${seq} is open below`;
  }

  /** @param {Row} row */
  barOf([seq, ms, slot, turn, kind, , tokens]) {
    const facts = [`seq ${seq}`, kind, slot, turn === null ? "" : `turn ${turn}`, timeHere(ms)];
    facts.push(tokens ? `${grouped(tokens)} tokens` : "");
    const bar = this.make("div", "bar");
    bar.append(this.make("span", "facts", facts.filter(Boolean).join(" · ")));
    if (turn !== null) {
      bar.append(this.button("request", () => this.askRequest(seq)));
      bar.append(this.button("only this turn", () => this.only(slot, turn)));
    }
    bar.append(this.button("close", () => this.close()));
    return bar;
  }

  /** @param {number} seq */
  askRequest(seq) {
    void this.ask({ kind: "request", seq }).then((request) => this.addRequest(seq, request));
  }

  /** Show the request of an event that is open, above its content. @param {number} seq @param {{parts: Part[]}} request */
  addRequest(seq, { parts }) {
    if (this.node.getAttribute("aria-label") !== `Event ${seq}`) return;
    const [bar, ...rest] = this.node.children;
    const isNone = parts.length === 0;
    const texts = isNone
      ? [this.make("p", "label", NO_REQUEST)]
      : parts.flatMap((part) => this.textOf(part, seq));
    const shown = this.make("div", "request");
    shown.append(...texts);
    const others = rest.filter((each) => each.className !== shown.className);
    this.node.replaceChildren(...(bar ? [bar] : []), shown, ...others);
    this.spoken.textContent = texts[0]?.textContent ?? "";
  }

  /** @param {Part} part @param {number} seq @returns {HTMLElement[]} */
  textOf(part, seq) {
    const text = readable(this.make("pre", "text", part.text), part.label);
    keepKeys(text);
    const shown = [this.make("p", "label", part.label), text];
    const size = `${grouped(part.characters)} characters`;
    if (part.text.length >= part.characters) return shown;
    if (part.text.length < MOST_CHARACTERS) {
      return [...shown, this.button(`show all ${size}`, () => this.open(seq, true))];
    }
    const first = `the first ${grouped(part.text.length)} of ${size}; %ledger --df has all of it`;
    return [...shown, this.make("p", "label", first)];
  }

  /** @param {string} text @param {() => void} press */
  button(text, press) {
    const button = buttonOf(this.make, text, press);
    keepKeys(button);
    return button;
  }
}
