// Event grid: the rows of a ledger explorer. Only those in sight are in the page; they are asked for a
// window at a time, so that 100,000 events cost what a hundred do.

import { keepKeys } from "./elements.js";
import { COLUMNS, DrawnRows, WINDOW_ROWS, gridPart, inSight, missing } from "./grid_rows.js";
import { HEAD_PX, ROW_PX } from "./grid_style.js";

/** @import { Row, Window } from "./grid_rows.js" */

/**
 * @typedef {{slot: string | null, turn: number | null, kinds: string[], find: string}} Filter
 * @typedef {{total: number, first: number, rows: Row[]}} Rows
 * @typedef {{ask: (message: object) => Promise<any>, open: (row: Row) => void, escape: () => boolean,
 *   counted: (total: number | null) => void}} GridOptions  `counted(null)`: the kernel is waited for
 */

const SHOWN_ROWS = 16;
const KEPT_ROWS = 4000;
const END_PX = 2 ** 31; // further than any end
const QUIET_MS = 1500; // before we say that the kernel is waited for

/** A grid of events; `filter` fills it. */
export class EventGrid {
  /** @param {Document} document @param {GridOptions} options */
  constructor(document, { ask, open, escape, counted }) {
    this.ask = ask;
    this.open = open;
    this.escape = escape;
    this.counted = counted;
    /** @type {Filter} */
    this.wanted = { slot: null, turn: null, kinds: [], find: "" };
    /** Of the filter: answers to an older one are dropped. */
    this.generation = 0;
    this.total = 0;
    this.isAsking = false;
    /** It grew meanwhile; how much matches isn't known. */
    this.isStale = false;
    this.isDrawing = false;
    /** Where it was scrolled to when it was last in the page. */
    this.top = 0;
    this.isAtEnd = true;
    this.active = -1;
    /** A row that is to be opened as soon as it is known. */
    this.opening = -1;
    /** @type {Map<number, Row>} */
    this.known = new Map();
    this.node = gridPart(document, "grid", "grid");
    this.space = gridPart(document, "space", "rowgroup");
    this.rows = new DrawnRows(this.space);
    this.build(document);
    this.listen();
  }

  /** @param {Document} document */
  build(document) {
    this.node.setAttribute("aria-label", "Events");
    this.node.setAttribute("aria-readonly", "true");
    this.node.setAttribute("aria-colcount", String(COLUMNS.length));
    this.node.setAttribute("tabindex", "0");
    keepKeys(this.node);
    const head = gridPart(document, "row", "row", "head");
    head.setAttribute("aria-rowindex", "1");
    const cells = COLUMNS.map((name) => gridPart(document, "cell", "columnheader", name, name));
    head.append(...cells);
    this.node.append(head, this.space);
  }

  listen() {
    this.node.addEventListener("scroll", () => {
      this.noteScrolling();
      this.draw();
    });
    this.node.addEventListener("click", ({ target }) => {
      const row = /** @type {Element} */ (target).closest(".am-ledger__row--event");
      const at = this.rows.indexOf(row);
      if (at === undefined) return;
      this.goTo(at);
      this.openActive();
    });
    this.node.addEventListener("keydown", (event) => this.onKeydown(event));
    if (typeof ResizeObserver !== "function") return;
    // Where a notebook takes it out of the page and puts it back, its place is lost without a word.
    new ResizeObserver(() => {
      if (this.node.scrollTop !== this.top) this.scrollTo(this.top);
      this.draw();
    }).observe(this.node);
  }

  focus() {
    this.node.focus({ preventScroll: true });
  }

  /**
   * Show what a filter lets through, its end first: the newest is what people look for.
   * @param {Filter} wanted
   */
  filter(wanted) {
    this.wanted = wanted;
    this.generation += 1;
    this.isAsking = false;
    this.request({ first: -WINDOW_ROWS, count: WINDOW_ROWS }, (answer) => {
      this.known.clear();
      this.active = this.opening = -1;
      this.take(answer);
      this.scrollTo(END_PX);
    });
  }

  /**
   * Hear that the ledger grew; `now` is how many match, null where that must be asked.
   * @param {number | null} now
   */
  grow(now) {
    if (now === null) this.isStale = true;
    else this.measure(Math.max(this.total, now));
    this.draw();
  }

  /** @param {Window} rows @param {(answer: Rows) => void} take */
  request(rows, take) {
    if (this.isAsking) return;
    this.isAsking = true;
    const { generation } = this;
    const quiet = setTimeout(() => this.counted(null), QUIET_MS);
    this.node.setAttribute("aria-busy", "true");
    void this.ask({ kind: "rows", query: this.wanted, ...rows }).then((answer) => {
      clearTimeout(quiet);
      if (generation !== this.generation) return;
      this.isAsking = false;
      this.node.setAttribute("aria-busy", "false");
      take(answer);
      this.draw();
    });
  }

  /** @param {Rows} answer */
  take({ total, first, rows }) {
    if (this.known.size > KEPT_ROWS) this.known.clear();
    rows.forEach((row, at) => this.known.set(first + at, row));
    this.measure(total);
    if (this.opening >= 0 && this.opening === this.active) this.openActive();
  }

  /** Scroll, or note where to, while the grid is out of the page. @param {number} px */
  scrollTo(px) {
    this.top = px;
    if (this.node.clientHeight === 0) return;
    this.node.scrollTop = px;
    this.noteScrolling();
  }

  noteScrolling() {
    const { node } = this;
    if (node.clientHeight === 0) return;
    this.top = node.scrollTop;
    this.isAtEnd = this.top + node.clientHeight >= node.scrollHeight - ROW_PX;
  }

  /** @param {number} now */
  measure(now) {
    const follows = this.isAtEnd && now > this.total;
    this.total = now;
    this.node.setAttribute("aria-rowcount", String(this.total + 1));
    this.space.style.setProperty("height", `${this.total * ROW_PX}px`);
    const rows = Math.min(SHOWN_ROWS, Math.max(1, this.total));
    this.node.style.setProperty("height", `${HEAD_PX + rows * ROW_PX + 2}px`);
    if (follows) this.scrollTo(END_PX);
    this.counted(this.total);
  }

  draw() {
    if (this.isDrawing) return;
    this.isDrawing = true;
    requestAnimationFrame(() => {
      this.isDrawing = false;
      if (this.node.clientHeight === 0) return; // out of the page: it is drawn when it is back
      const { first, last } = inSight(this.node);
      this.rows.draw(first, last, this.total, this.active, this.known);
      this.pointAtActive();
      this.requestMissing(first, last);
    });
  }

  /** @param {number} first @param {number} last */
  requestMissing(first, last) {
    const rows = missing(this.known, first, last, this.total);
    /** @param {Rows} answer */
    const take = (answer) => this.take(answer);
    if (rows !== null) this.request(rows, take);
    else if (this.isStale && !this.isAsking) {
      this.isStale = false;
      this.request({ first: this.total, count: WINDOW_ROWS }, take); // what came since and matches
    }
  }

  pointAtActive() {
    const row = this.rows.nodeOf(this.active);
    if (row) this.node.setAttribute("aria-activedescendant", row.id);
    else this.node.removeAttribute("aria-activedescendant");
  }

  /** @param {number} at */
  goTo(at) {
    if (this.total === 0) return;
    this.active = Math.min(this.total - 1, Math.max(0, at));
    const above = this.active * ROW_PX;
    const below = HEAD_PX + (this.active + 1) * ROW_PX - this.node.clientHeight;
    if (this.node.scrollTop > above) this.scrollTo(above);
    if (this.node.scrollTop < below) this.scrollTo(below);
    this.draw();
  }

  openActive() {
    const row = this.known.get(this.active);
    this.opening = row === undefined ? this.active : -1;
    if (row !== undefined) this.open(row);
  }

  /** @param {KeyboardEvent} event */
  onKeydown(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const to = this.rowBehind(event.key);
    if (to !== null) this.goTo(to);
    else if (event.key === "Enter" || event.key === " ") this.openActive();
    else if (event.key !== "Escape" || !this.escape()) return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Find the row that a key leads to. @param {string} key */
  rowBehind(key) {
    const here = this.active < 0 ? this.total : this.active;
    switch (key) {
      case "ArrowDown":
        return here + 1;
      case "ArrowUp":
        return here - 1;
      case "PageDown":
        return here + SHOWN_ROWS - 1;
      case "PageUp":
        return here - SHOWN_ROWS + 1;
      case "Home":
        return 0;
      case "End":
        return this.total - 1;
      default:
        return null;
    }
  }
}
