// The rows of a grid: those that are known, those that are drawn, and which to ask for.

import { HEAD_PX, ROW_PX } from "./grid_style.js";

/**
 * @typedef {[number, number, string, number | null, string, string, number]} Row  seq, ms since 1970,
 *   slot, turn, kind, line, tokens
 * @typedef {{first: number, count: number}} Window of rows; `first` below 0 counts from the end
 */

export const COLUMNS = ["seq", "time", "slot", "turn", "kind", "what"];
const UNKNOWN = ["", "", "", "", "", "…"];
const SPARE_ROWS = 8; // drawn above and below what is in sight
export const WINDOW_ROWS = 100; // asked for at once

/** Write a time as it is here, with seconds. @param {number} ms */
export function timeHere(ms) {
  const at = new Date(ms);
  const two = (/** @type {number} */ number) => String(number).padStart(2, "0");
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/**
 * Give the rows to ask for, when `first` to `last` should be seen; null where all are known.
 * @param {{has: (at: number) => boolean}} known @param {number} first @param {number} last
 * @param {number} total @returns {Window | null}
 */
export function missing(known, first, last, total) {
  let [from, to] = [first, Math.min(last, total)];
  while (from < to && known.has(from)) from += 1;
  while (to > from && known.has(to - 1)) to -= 1;
  if (from >= to) return null;
  const spare = Math.max(0, WINDOW_ROWS - (to - from));
  const start = Math.max(0, from - Math.floor(spare / 2));
  return { first: start, count: Math.min(total - start, to - from + spare) };
}

/**
 * Make an element of the grid, which holds a text of its own, be it empty.
 * @param {Document} document @param {string} block @param {string} role @param {string} [kind]
 * @param {string} [text] @returns {HTMLElement}
 */
export function gridPart(document, block, role, kind = "", text = "") {
  const node = document.createElement(block === "cell" ? "span" : "div");
  node.className = `am-ledger__${block}${kind ? ` am-ledger__${block}--${kind}` : ""}`;
  node.setAttribute("role", role);
  node.append(document.createTextNode(text));
  return node;
}

/** @param {Row} row */
function textsOf([seq, ms, slot, turn, kind, line]) {
  const time = timeHere(ms).slice(5, -3);
  return [String(seq), time, slot, turn === null ? "" : String(turn), kind, line];
}

/**
 * The nodes of the rows in sight, each used again for another row when its own is out of sight. Texts
 * are changed in place, so that nobody who watches the page for new nodes wakes.
 */
export class DrawnRows {
  /** @param {HTMLElement} space that they stand in */
  constructor(space) {
    this.space = space;
    // Each session's module is loaded by itself, so that counting would give two notebooks the same ids.
    this.name = `am-ledger-${Math.random().toString(36).slice(2)}`;
    /** @type {Map<number, {node: HTMLElement, cells: HTMLElement[]}>} */
    this.drawn = new Map();
    /** @type {{node: HTMLElement, cells: HTMLElement[]}[]} */
    this.unused = [];
  }

  /** @param {number} at */
  nodeOf(at) {
    return this.drawn.get(at)?.node;
  }

  /** Find where the row of a node stands. @param {Element | null} node */
  indexOf(node) {
    return [...this.drawn].find(([, row]) => row.node === node)?.[0];
  }

  /**
   * Draw the rows from `first` to `last` and some around them.
   * @param {number} first @param {number} last @param {number} total @param {number} active
   * @param {Map<number, Row>} known
   */
  draw(first, last, total, active, known) {
    const [from, to] = [Math.max(0, first - SPARE_ROWS), Math.min(total, last + SPARE_ROWS)];
    for (const [at, row] of this.drawn) {
      if (at >= from && at < to) continue;
      this.drawn.delete(at);
      this.unused.push(row);
    }
    for (let at = from; at < to; at += 1) this.drawRow(at, at === active, known.get(at));
    for (const row of this.unused) row.node.hidden = true;
  }

  /** @param {number} at @param {boolean} isActive @param {Row | undefined} row */
  drawRow(at, isActive, row) {
    const { node, cells } = this.drawn.get(at) ?? this.place(at);
    node.setAttribute("aria-selected", String(isActive));
    const texts = row === undefined ? UNKNOWN : textsOf(row);
    cells.forEach((cell, column) => {
      const shown = /** @type {Text} */ (cell.firstChild);
      const text = texts[column] ?? "";
      if (shown.data !== text) shown.data = text;
    });
  }

  /** @param {number} at */
  place(at) {
    const row = this.unused.pop() ?? this.newRow();
    this.drawn.set(at, row);
    row.node.hidden = false;
    row.node.id = `${this.name}-${at}`;
    row.node.setAttribute("aria-rowindex", String(at + 2));
    row.node.style.setProperty("transform", `translateY(${at * ROW_PX}px)`);
    return row;
  }

  newRow() {
    const document = this.space.ownerDocument;
    const node = gridPart(document, "row", "row", "event");
    const cells = COLUMNS.map((column) => gridPart(document, "cell", "gridcell", column));
    node.append(...cells);
    this.space.append(node);
    return { node, cells };
  }
}

/** Give the rows that a scrolled grid has in sight. @param {HTMLElement} grid */
export const inSight = (grid) => ({
  first: Math.max(0, Math.floor(grid.scrollTop / ROW_PX)),
  last: Math.ceil((grid.scrollTop + grid.clientHeight - HEAD_PX) / ROW_PX),
});
