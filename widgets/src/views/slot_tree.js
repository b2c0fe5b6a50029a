// The tree of a session's slots: a tab a slot, one of which is active, by mouse and keyboard.

import { consume } from "./elements.js";
import { counted } from "./words.js";

/** @import { Make } from "./elements.js" */

/**
 * @typedef {{id: string, mode: string, mode_label: string, parent: string | null,
 *   forked_at_turn: number | null, depth: number, turns: number, messages: number,
 *   tokens: number, is_current: boolean, is_running: boolean, model: string | null}} SlotState
 * @typedef {{activated: (slot: string | null) => void, switchTo: (slot: string) => void,
 *   rename: () => void, remove: () => void, canChange: () => boolean}} Actions
 */

const DEEPEST = 8; // further levels are told in words only

/** @param {SlotState} slot */
function origin(slot) {
  if (slot.parent === null) return "";
  return `from ${slot.parent}` + (slot.forked_at_turn ? ` at turn ${slot.forked_at_turn}` : "");
}

/** What a screen reader says of a tab. @param {SlotState} slot */
export function spokenName(slot) {
  const facts = [
    slot.id,
    slot.mode_label,
    counted(slot.turns, "turn"),
    counted(slot.tokens, "token"),
  ];
  if (origin(slot)) facts.push(origin(slot));
  if (slot.model !== null) facts.push(slot.model);
  if (slot.is_running) facts.push("running");
  return facts.join(", ");
}

/** The tabs; `active` is the one that the Tab key reaches and that actions are about. */
export class SlotTree {
  /** @param {Make} make @param {Actions} actions */
  constructor(make, actions) {
    this.make = make;
    this.actions = actions;
    this.node = make("div", "list");
    this.node.setAttribute("role", "tree");
    this.node.addEventListener("keydown", (event) => this.onKeydown(event));
    /** @type {SlotState[]} */
    this.slots = [];
    /** @type {Map<string, {node: HTMLElement, shown: string}>} */
    this.rows = new Map();
    /** @type {string | null} */
    this.active = null;
  }

  get current() {
    return this.slots.find((slot) => slot.is_current)?.id;
  }

  /** Let the tab that has the focus be the active one, and tell whether one has it. */
  followFocus() {
    const focused = this.node.ownerDocument.activeElement;
    const hasFocus = this.node.contains(focused);
    if (hasFocus) this.active = focused?.getAttribute("data-slot") ?? this.active;
    return hasFocus;
  }

  /** @param {boolean} hasFocus */
  draw(hasFocus) {
    const names = new Set(this.slots.map(({ id }) => id));
    for (const id of this.rows.keys()) if (!names.has(id)) this.rows.delete(id);
    const nodes = this.slots.map((slot) => this.drawRow(slot));
    const there = this.node.children;
    const isSame = nodes.length === there.length && nodes.every((node, at) => node === there[at]);
    if (!isSame) this.node.replaceChildren(...nodes);
    const isThere = this.active !== null && names.has(this.active);
    const active = isThere ? this.active : (this.current ?? this.slots[0]?.id ?? null);
    this.activate(active, { focuses: hasFocus });
  }

  /** @param {SlotState} slot */
  drawRow(slot) {
    const row = this.rows.get(slot.id) ?? this.newRow(slot.id);
    const shown = JSON.stringify(slot);
    if (row.shown !== shown) this.fill(row.node, slot);
    row.shown = shown;
    return row.node;
  }

  /** @param {string} id */
  newRow(id) {
    const node = this.make("div", "tab");
    node.setAttribute("role", "treeitem");
    node.setAttribute("data-slot", id);
    node.addEventListener("click", () => {
      this.activate(id, { focuses: true });
      this.switchTo(id);
    });
    node.addEventListener("focus", () => this.active === id || this.activate(id));
    const row = { node, shown: "" };
    this.rows.set(id, row);
    return row;
  }

  /** @param {HTMLElement} tab @param {SlotState} slot */
  fill(tab, slot) {
    const { make } = this;
    tab.setAttribute("aria-selected", String(slot.is_current));
    tab.setAttribute("aria-level", String(slot.depth + 1));
    tab.setAttribute("aria-label", spokenName(slot));
    const depth = Math.min(slot.depth, DEEPEST);
    tab.style.setProperty("--am-depth", String(depth));
    const name = make("span", "name");
    if (depth > 0) name.append(make("span", "branch", `${"   ".repeat(depth - 1)}└ `));
    name.append(make("bdi", "id", slot.id));
    if (slot.mode !== "full") name.append(make("span", "mode", slot.mode_label));
    if (slot.is_running) name.append(make("span", "mode", "running"));
    const facts = `${counted(slot.turns, "turn")} · ${counted(slot.tokens, "token")}`;
    tab.replaceChildren(name, make("span", "facts", facts));
    const notes = [origin(slot), slot.model ?? ""].filter(Boolean).join(" · ");
    if (notes) tab.append(make("span", "from", notes));
  }

  /** Let actions be about a slot, and the Tab key reach it. @param {string | null} id */
  activate(id, { focuses = false } = {}) {
    this.active = id;
    for (const [name, row] of this.rows) {
      row.node.setAttribute("tabindex", name === id ? "0" : "-1");
    }
    this.actions.activated(id);
    const node = id === null ? undefined : this.rows.get(id)?.node;
    if (focuses && node && node.ownerDocument.activeElement !== node) node.focus();
  }

  /** @param {string} id */
  switchTo(id) {
    if (id !== this.current) this.actions.switchTo(id);
  }

  /** @param {KeyboardEvent} event */
  onKeydown(event) {
    const at = this.slots.findIndex(({ id }) => id === this.active);
    const slot = this.slots[at];
    if (slot === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    const to = this.tabBehind(event.key, at, slot);
    const act = to === null ? this.actionBehind(event.key, slot) : () => this.goTo(to);
    if (act !== null) consume(event, act);
  }

  /** @param {number} at */
  goTo(at) {
    this.activate(this.slots[at]?.id ?? null, { focuses: true });
  }

  /** Find the tab that a key leads to. @param {string} key @param {number} at @param {SlotState} slot */
  tabBehind(key, at, slot) {
    const last = this.slots.length - 1;
    const parent = this.slots.findIndex(({ id }) => id === slot.parent);
    const child = this.slots.findIndex((each) => each.parent === slot.id);
    switch (key) {
      case "ArrowDown":
        return Math.min(last, at + 1);
      case "ArrowUp":
        return Math.max(0, at - 1);
      case "ArrowLeft":
        return parent < 0 ? at : parent;
      case "ArrowRight":
        return child < 0 ? at : child;
      case "Home":
        return 0;
      case "End":
        return last;
      default:
        return null;
    }
  }

  /** @param {string} key @param {SlotState} slot @returns {(() => void) | null} */
  actionBehind(key, slot) {
    const { rename, remove, canChange } = this.actions;
    if (key === "Enter" || key === " ") return () => this.switchTo(slot.id);
    if (key === "F2" && canChange()) return rename;
    if (key === "Delete" && canChange()) return remove;
    return null;
  }
}
