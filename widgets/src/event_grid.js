// Event grid: the rows of a ledger explorer. Only those in sight are in the page; they are asked for a
// window at a time, so that 100,000 events cost what a hundred do. Text is only ever set as text.

/**
 * @typedef {[number, number, string, number | null, string, string, number]} Row  seq, ms since 1970,
 *   slot, turn, kind, line, tokens
 * @typedef {{slot: string | null, turn: number | null, kinds: string[], find: string}} Filter
 * @typedef {{ask: (message: object) => Promise<any>, open: (row: Row) => void, escape: () => boolean,
 *   counted: (total: number | null) => void}} GridOptions  `counted(null)`: the kernel is waited for
 */

const ROW_PX = 24;
const HEAD_PX = 27;
const SHOWN_ROWS = 16;
const SPARE_ROWS = 8; // drawn above and below what is in sight
const WINDOW_ROWS = 100; // asked for at once
const KEPT_ROWS = 4000;
const END_PX = 2 ** 31; // further than any end
const QUIET_MS = 1500; // before we say that the kernel is waited for
const OURS = "data-lm-suppress-shortcuts"; // JupyterLab's: on what has the focus, or x cuts the cell
const COLUMNS = ["seq", "time", "slot", "turn", "kind", "what"];

const GRID_STYLE = `
.am-ledger .am-ledger__grid { overflow: auto; overflow-anchor: none; contain: strict; border-radius: 3px;
  border: 1px solid var(--jp-border-color1, rgba(128, 128, 128, .5)); background: var(--jp-layout-color1, transparent); }
.am-ledger .am-ledger__row { display: grid; align-items: center; column-gap: 10px; box-sizing: border-box; padding: 0 8px;
  grid-template-columns: 6ch 10.5ch minmax(4ch, 9ch) 4.5ch 15.5ch minmax(0, 1fr); }
.am-ledger .am-ledger__row--head { position: sticky; top: 0; z-index: 1; height: ${HEAD_PX}px;
  background: var(--jp-layout-color2, Canvas); border-bottom: 1px solid var(--jp-border-color1, rgba(128, 128, 128, .5)); }
.am-ledger .am-ledger__row--head .am-ledger__cell { font-weight: 600; }
.am-ledger .am-ledger__space { position: relative; }
.am-ledger .am-ledger__row--event { position: absolute; left: 0; right: 0; top: 0; height: ${ROW_PX}px; contain: strict; cursor: pointer;
  border-bottom: 1px solid var(--jp-border-color3, rgba(128, 128, 128, .15)); }
.am-ledger .am-ledger__row--event:hover { background: var(--jp-layout-color2, rgba(128, 128, 128, .12)); }
.am-ledger .am-ledger__row--event[aria-selected="true"] { background: var(--jp-layout-color2, rgba(128, 128, 128, .2));
  box-shadow: inset 3px 0 0 var(--jp-brand-color1, var(--vscode-focusBorder, LinkText)); }
.am-ledger .am-ledger__cell { min-width: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; unicode-bidi: plaintext; }
.am-ledger .am-ledger__row--event:not(:hover, [aria-selected="true"]) .am-ledger__cell:not(.am-ledger__cell--what) {
  color: var(--jp-ui-font-color2, inherit); }
.am-ledger .am-ledger__cell--seq, .am-ledger .am-ledger__cell--turn { text-align: right; font-variant-numeric: tabular-nums; }
.am-ledger .am-ledger__cell--slot { text-align: left; }
.am-ledger .am-ledger__cell--time { font-variant-numeric: tabular-nums; }
@container (max-width: 620px) {
  .am-ledger .am-ledger__row { grid-template-columns: 6ch 10ch minmax(0, 1fr); }
  .am-ledger :is(.am-ledger__cell--time, .am-ledger__cell--slot, .am-ledger__cell--turn) { display: none; }
}
`;

/** Write a time as it is here, with seconds. @param {number} ms */
export function timeHere(ms) {
  const at = new Date(ms);
  const two = (number) => String(number).padStart(2, "0");
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/**
 * Give the rows to ask for, when `first` to `last` should be seen; null where all are known.
 * @param {{has: (at: number) => boolean}} known @param {number} first @param {number} last @param {number} total
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

/** Make a grid of events; `filter` fills it. @param {Document} document @param {GridOptions} options */
export function eventGrid(document, { ask, open, escape, counted }) {
  // Each session's module is loaded by itself, so that counting would give two notebooks the same ids.
  const name = `am-ledger-${Math.random().toString(36).slice(2)}`;
  /** @type {Filter} */
  let filter = { slot: null, turn: null, kinds: [], find: "" };
  let total = 0;
  let generation = 0; // of the filter: answers to an older one are dropped
  let isAsking = false;
  let isStale = false; // it grew meanwhile; how much matches isn't known
  let isDrawing = false;
  let top = 0; // as it was when it was last in the page
  let isAtEnd = true;
  let active = -1;
  let opening = -1; // a row that is to be opened as soon as it is known
  /** @type {Map<number, Row>} */
  const known = new Map();
  /** @type {Map<number, {node: HTMLElement, cells: HTMLElement[]}>} */
  const drawn = new Map();
  /** @type {{node: HTMLElement, cells: HTMLElement[]}[]} */
  const unused = [];

  const grid = make("div", "grid", "grid");
  grid.setAttribute("aria-label", "Events");
  grid.setAttribute("aria-readonly", "true");
  grid.setAttribute("aria-colcount", String(COLUMNS.length));
  grid.setAttribute("tabindex", "0");
  grid.setAttribute(OURS, "true");
  const head = make("div", "row", "row", "head");
  head.setAttribute("aria-rowindex", "1");
  head.append(...COLUMNS.map((column) => make("span", "cell", "columnheader", column, column)));
  const space = make("div", "space", "rowgroup");
  grid.append(head, space);

  /** @param {string} tag @param {string} block @param {string} role @param {string} [kind] @param {string} [text] */
  function make(tag, block, role, kind, text = "") {
    const node = document.createElement(tag);
    node.className = `am-ledger__${block}${kind ? ` am-ledger__${block}--${kind}` : ""}`;
    node.setAttribute("role", role);
    node.append(document.createTextNode(text));
    return node;
  }

  /** @param {{first: number, count: number}} rows @param {(told: any) => void} heard */
  function want(rows, heard) {
    if (isAsking) return;
    isAsking = true;
    const [mine, quiet] = [generation, setTimeout(() => counted(null), QUIET_MS)];
    grid.setAttribute("aria-busy", "true");
    void ask({ kind: "rows", query: filter, ...rows }).then((told) => {
      clearTimeout(quiet);
      if (mine !== generation) return;
      isAsking = false;
      grid.setAttribute("aria-busy", "false");
      heard(told);
      draw();
    });
  }

  /** @param {{total: number, first: number, rows: Row[]}} told */
  function take(told) {
    if (known.size > KEPT_ROWS) known.clear();
    told.rows.forEach((row, at) => known.set(told.first + at, row));
    measure(told.total);
    if (opening >= 0 && opening === active) openActive();
  }

  /** Scroll, or note where to, while the grid is out of the page. @param {number} px */
  function scrollTo(px) {
    top = px;
    if (grid.clientHeight === 0) return;
    grid.scrollTop = px;
    scrolled();
  }

  function scrolled() {
    if (grid.clientHeight === 0) return;
    top = grid.scrollTop;
    isAtEnd = top + grid.clientHeight >= grid.scrollHeight - ROW_PX;
  }

  /** @param {number} now */
  function measure(now) {
    const follows = isAtEnd && now > total;
    total = now;
    grid.setAttribute("aria-rowcount", String(total + 1));
    space.style.setProperty("height", `${total * ROW_PX}px`);
    const rows = Math.min(SHOWN_ROWS, Math.max(1, total));
    grid.style.setProperty("height", `${HEAD_PX + rows * ROW_PX + 2}px`);
    if (follows) scrollTo(END_PX);
    counted(total);
  }

  function draw() {
    if (isDrawing) return;
    isDrawing = true;
    requestAnimationFrame(() => {
      isDrawing = false;
      if (grid.clientHeight === 0) return; // out of the page: it is drawn when it is back
      const first = Math.max(0, Math.floor(grid.scrollTop / ROW_PX));
      const last = Math.ceil((grid.scrollTop + grid.clientHeight - HEAD_PX) / ROW_PX);
      const [from, to] = [Math.max(0, first - SPARE_ROWS), Math.min(total, last + SPARE_ROWS)];
      for (const [at, row] of drawn) {
        if (at >= from && at < to) continue;
        drawn.delete(at);
        unused.push(row);
      }
      for (let at = from; at < to; at += 1) place(at);
      for (const row of unused) row.node.hidden = true;
      point();
      fetch(first, last);
    });
  }

  /** @param {number} first @param {number} last */
  function fetch(first, last) {
    const rows = missing(known, first, last, total);
    if (rows !== null) want(rows, take);
    else if (isStale && !isAsking) {
      isStale = false;
      want({ first: total, count: WINDOW_ROWS }, take); // what came since and matches
    }
  }

  /** @param {number} at */
  function place(at) {
    let row = drawn.get(at);
    if (row === undefined) {
      row = unused.pop() ?? newRow();
      drawn.set(at, row);
      row.node.hidden = false;
      row.node.id = `${name}-${at}`;
      row.node.setAttribute("aria-rowindex", String(at + 2));
      row.node.style.setProperty("transform", `translateY(${at * ROW_PX}px)`);
    }
    row.node.setAttribute("aria-selected", String(at === active));
    const told = known.get(at);
    const texts = told === undefined ? ["", "", "", "", "", "…"] : textsOf(told);
    row.cells.forEach((cell, column) => {
      if (cell.firstChild.data !== texts[column]) cell.firstChild.data = texts[column];
    });
  }

  /** @param {Row} row */
  function textsOf([seq, ms, slot, turn, kind, line]) {
    return [String(seq), timeHere(ms).slice(5, -3), slot, turn === null ? "" : String(turn), kind, line];
  }

  /** Its texts are changed in place, so that nobody who watches the page for new nodes wakes. */
  function newRow() {
    const node = make("div", "row", "row", "event");
    const cells = COLUMNS.map((column) => make("span", "cell", "gridcell", column));
    node.append(...cells);
    space.append(node);
    return { node, cells };
  }

  function point() {
    const row = drawn.get(active);
    if (row) grid.setAttribute("aria-activedescendant", row.node.id);
    else grid.removeAttribute("aria-activedescendant");
  }

  /** @param {number} at */
  function go(at) {
    if (total === 0) return;
    active = Math.min(total - 1, Math.max(0, at));
    const [above, below] = [active * ROW_PX, HEAD_PX + (active + 1) * ROW_PX - grid.clientHeight];
    if (grid.scrollTop > above) scrollTo(above);
    if (grid.scrollTop < below) scrollTo(below);
    draw();
  }

  function openActive() {
    const row = known.get(active);
    opening = row === undefined ? active : -1;
    if (row !== undefined) open(row);
  }

  grid.addEventListener("scroll", () => {
    scrolled();
    draw();
  });
  grid.addEventListener("click", (event) => {
    const row = event.target.closest(".am-ledger__row--event");
    const found = [...drawn].find(([, each]) => each.node === row);
    if (!found) return;
    go(found[0]);
    openActive();
  });
  grid.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const here = active < 0 ? total : active;
    const steps = {
      ArrowDown: here + 1,
      ArrowUp: here - 1,
      PageDown: here + SHOWN_ROWS - 1,
      PageUp: here - SHOWN_ROWS + 1,
      Home: 0,
      End: total - 1,
    };
    if (event.key in steps) go(steps[event.key]);
    else if (event.key === "Enter" || event.key === " ") openActive();
    else if (event.key !== "Escape" || !escape()) return;
    event.preventDefault();
    event.stopPropagation();
  });
  if (typeof ResizeObserver === "function") {
    // Where a notebook takes it out of the page and puts it back, its place is lost without a word.
    new ResizeObserver(() => {
      if (grid.scrollTop !== top) scrollTo(top);
      draw();
    }).observe(grid);
  }

  return {
    node: grid,
    focus: () => grid.focus({ preventScroll: true }),
    /** Show what a filter lets through, its end first: the newest is what people look for. */
    filter: (/** @type {Filter} */ wanted) => {
      filter = wanted;
      generation += 1;
      isAsking = false;
      want({ first: -WINDOW_ROWS, count: WINDOW_ROWS }, (told) => {
        known.clear();
        active = opening = -1;
        take(told);
        scrollTo(END_PX);
      });
    },
    /** Hear that the ledger grew; `now` is how many match, null where that must be asked. */
    grow: (/** @type {number | null} */ now) => {
      if (now === null) isStale = true;
      else measure(Math.max(total, now));
      draw();
    },
  };
}
