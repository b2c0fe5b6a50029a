// Built from widgets/src by `make views`; change it there.

// widgets/src/views/elements.js
var KEEPS_KEYS = "data-lm-suppress-shortcuts";
var makerOf = (document2, block) => (tag, name, text = "") => {
  const node = document2.createElement(tag);
  node.className = `${block}__${name}`;
  node.textContent = text;
  return node;
};
function mount(root, css, box) {
  const style = root.ownerDocument.createElement("style");
  style.textContent = css;
  root.replaceChildren(style, box);
}
var keepKeys = (node) => node.setAttribute(KEEPS_KEYS, "true");
function buttonOf(make, text, press) {
  const button = make("button", "button", text);
  button.setAttribute("type", "button");
  button.addEventListener("click", press);
  return button;
}
function optionOf(make, value, text = value) {
  const option = make("option", "option", text);
  option.setAttribute("value", value);
  return option;
}
function readable(node, label) {
  node.setAttribute("tabindex", "0");
  node.setAttribute("role", "group");
  node.setAttribute("aria-label", label);
  return node;
}

// widgets/src/live/model.js
function kernelOf(model) {
  const manager = model.widget_manager;
  return manager?.isDisposed ? void 0 : manager?.kernel?.id;
}

// widgets/src/live/outputs.js
var DRAWN = "agent-magics-drawn mathjax_ignore";
var drawnIn = (output) => childrenOf(output).find((child) => child.className === DRAWN) ?? null;
var childrenOf = (output) => (
  /** @type {HTMLElement[]} */
  [...output.children]
);
function showStatic(output, shows) {
  for (const child of childrenOf(output)) {
    if (child.className !== DRAWN) child.style.setProperty("display", shows ? "" : "none");
  }
}
function placeRoot(element, root = document.createElement("div")) {
  root.className = DRAWN;
  element.append(root);
  return root;
}
function replaceStatic(output, root) {
  const placed = placeRoot(output, root);
  keepFoldsKeys(output);
  showStatic(output, false);
  return placed;
}
var classBehind = (output, prefix) => output.className.split(" ").find((name) => name.startsWith(prefix))?.slice(prefix.length);
function keepFoldsKeys(output) {
  const folds = output.closest(".am-dashboard")?.querySelectorAll("summary") ?? [];
  for (const fold of folds) keepKeys(fold);
}
function followOutputs(model, see, leave) {
  const outputs = document.getElementsByClassName(model.get("anchor"));
  const kernel = kernelOf(model);
  let isOver = false;
  const look = () => {
    if (isOver) return;
    if (kernelOf(model) !== kernel) {
      end();
      return;
    }
    for (const output of outputs) see(output);
  };
  const page = new MutationObserver(look);
  const end = () => {
    isOver = true;
    page.disconnect();
    model.off("comm_live_update", end);
    leave();
    for (const output of outputs) {
      drawnIn(output)?.remove();
      showStatic(output, true);
    }
  };
  model.on("comm_live_update", end);
  page.observe(document.body, { childList: true, subtree: true });
  look();
  return { look, end };
}

// widgets/src/live/questions.js
var ASK_ANEW_MS = 1e4;
function questionsTo(model) {
  const page = Math.random().toString(36).slice(2);
  const waiting = /* @__PURE__ */ new Map();
  let asked = 0;
  const ask = (message) => new Promise((resolve) => {
    asked += 1;
    const id = `${page}-${asked}`;
    const send = () => model.send({ ...message, id });
    waiting.set(id, { resolve, timer: setInterval(send, ASK_ANEW_MS) });
    send();
  });
  const answered = (message) => {
    const found = waiting.get(message.id);
    if (found === void 0) return;
    waiting.delete(message.id);
    clearInterval(found.timer);
    found.resolve(message);
  };
  model.on("msg:custom", answered);
  const leave = () => {
    model.off("msg:custom", answered);
    for (const { timer } of waiting.values()) clearInterval(timer);
  };
  return { ask, leave };
}

// widgets/src/live/live_ledger.js
var EXPLORER = "am-ledger--";
var FIRST = "1";
function chosenBefore(name) {
  try {
    return JSON.parse(sessionStorage.getItem(name) ?? "null");
  } catch {
    return null;
  }
}
function keepChosen(name, filter) {
  try {
    sessionStorage.setItem(name, JSON.stringify(filter));
  } catch {
  }
}
var Explorers = class {
  /** @param {Model} model @param {View} view */
  constructor(model, view) {
    this.model = model;
    this.view = view;
    this.questions = questionsTo(model);
    this.drawn = [];
    this.placed = /* @__PURE__ */ new Set();
  }
  /** @returns {ModelState} */
  get state() {
    return this.model.get("state");
  }
  /** @param {HTMLElement} root @param {string} number @returns {Drawn} */
  drawIn(root, number) {
    const { state } = this;
    const name = `${this.model.get("anchor")} ${EXPLORER}${number}`;
    const explorer = this.view(root, {
      ask: this.questions.ask,
      begins: chosenBefore(name) ?? state.queries[number] ?? {},
      state,
      chosen: (filter) => keepChosen(name, filter)
    });
    return { number, root, explorer, state };
  }
  /** @param {Element} output */
  see(output) {
    const number = classBehind(output, EXPLORER);
    if (number !== void 0) this.update(this.explorerOf(output, number));
  }
  /** @param {Element} output @param {string} number */
  explorerOf(output, number) {
    const there = this.drawn.find(({ root }) => root.parentElement === output);
    if (there !== void 0) return there;
    const lost = this.drawn.find((each) => each.number === number && !each.root.isConnected);
    drawnIn(output)?.remove();
    if (lost !== void 0) {
      replaceStatic(output, lost.root);
      return lost;
    }
    const found = this.drawIn(replaceStatic(output), number);
    this.drawn.push(found);
    return found;
  }
  /** @param {Drawn} drawn */
  update(drawn) {
    if (drawn.state === this.state) return;
    drawn.state = this.state;
    drawn.explorer.update(drawn.state);
  }
  leave() {
    this.questions.leave();
    this.drawn = [];
  }
};
var liveLedger = (view) => () => {
  let explorers;
  function initialize({ model }) {
    const ours = new Explorers(model, view);
    explorers = ours;
    const changed = () => {
      following.look();
      ours.placed.forEach((drawn) => ours.update(drawn));
    };
    const leave = () => {
      model.off("change:state", changed);
      ours.leave();
    };
    const following = followOutputs(model, (output) => ours.see(output), leave);
    model.on("change:state", changed);
    return following.end;
  }
  function render({ el }) {
    const drawn = explorers.drawIn(placeRoot(el), FIRST);
    explorers.placed.add(drawn);
    return () => explorers.placed.delete(drawn);
  }
  return { initialize, render };
};

// widgets/src/views/styles.js
var TEXT = `font: var(--jp-ui-font-size1, 13px)/1.4 var(--jp-ui-font-family, system-ui, sans-serif);
  color: var(--jp-ui-font-color1, var(--vscode-foreground, CanvasText));`;
var CODE_FONT = "font: var(--jp-code-font-size, 13px)/1.4 var(--jp-code-font-family, monospace);";
var MUTED = "color: var(--jp-ui-font-color2, inherit);";
var ACCENT = "var(--jp-brand-color1, var(--vscode-focusBorder, LinkText))";
var FOCUS_RING = `outline: 2px solid ${ACCENT};`;
var EDGE = "1px solid var(--jp-border-color1, rgba(128, 128, 128, .5))";
var CONTROL_EDGE = "1px solid var(--jp-border-color0, rgba(128, 128, 128, .7))";
var HOVERED = "background: var(--jp-layout-color2, rgba(128, 128, 128, .15));";
var SPOKEN_ONLY = "position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap;";

// widgets/src/views/grid_style.js
var ROW_PX = 24;
var HEAD_PX = 27;
var STYLE = `
.am-ledger .am-ledger__grid { overflow: auto; overflow-anchor: none; contain: strict; border-radius: 3px;
  border: ${EDGE}; background: var(--jp-layout-color1, transparent); }
.am-ledger .am-ledger__row { display: grid; align-items: center; column-gap: 10px; box-sizing: border-box; padding: 0 8px;
  grid-template-columns: 6ch 10.5ch minmax(4ch, 9ch) 4.5ch 15.5ch minmax(0, 1fr); }
.am-ledger .am-ledger__row--head { position: sticky; top: 0; z-index: 1; height: ${HEAD_PX}px;
  background: var(--jp-layout-color2, Canvas); border-bottom: ${EDGE}; }
.am-ledger .am-ledger__row--head .am-ledger__cell { font-weight: 600; }
.am-ledger .am-ledger__space { position: relative; }
.am-ledger .am-ledger__row--event { position: absolute; left: 0; right: 0; top: 0; height: ${ROW_PX}px; contain: strict; cursor: pointer;
  border-bottom: 1px solid var(--jp-border-color3, rgba(128, 128, 128, .15)); }
.am-ledger .am-ledger__row--event:hover { background: var(--jp-layout-color2, rgba(128, 128, 128, .12)); }
.am-ledger .am-ledger__row--event[aria-selected="true"] { background: var(--jp-layout-color2, rgba(128, 128, 128, .2));
  box-shadow: inset 3px 0 0 ${ACCENT}; }
.am-ledger .am-ledger__cell { min-width: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; unicode-bidi: plaintext; }
.am-ledger .am-ledger__row--event:not(:hover, [aria-selected="true"]) .am-ledger__cell:not(.am-ledger__cell--what) {
  ${MUTED} }
.am-ledger .am-ledger__cell--seq, .am-ledger .am-ledger__cell--turn { text-align: right; font-variant-numeric: tabular-nums; }
.am-ledger .am-ledger__cell--slot { text-align: left; }
.am-ledger .am-ledger__cell--time { font-variant-numeric: tabular-nums; }
@container (max-width: 620px) {
  .am-ledger .am-ledger__row { grid-template-columns: 6ch 10ch minmax(0, 1fr); }
  .am-ledger :is(.am-ledger__cell--time, .am-ledger__cell--slot, .am-ledger__cell--turn) { display: none; }
}
`;

// widgets/src/views/grid_rows.js
var COLUMNS = ["seq", "time", "slot", "turn", "kind", "what"];
var UNKNOWN = ["", "", "", "", "", "…"];
var SPARE_ROWS = 8;
var WINDOW_ROWS = 100;
function timeHere(ms) {
  const at = new Date(ms);
  const two = (number) => String(number).padStart(2, "0");
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}
function missing(known, first, last, total) {
  let [from, to] = [first, Math.min(last, total)];
  while (from < to && known.has(from)) from += 1;
  while (to > from && known.has(to - 1)) to -= 1;
  if (from >= to) return null;
  const spare = Math.max(0, WINDOW_ROWS - (to - from));
  const start = Math.max(0, from - Math.floor(spare / 2));
  return { first: start, count: Math.min(total - start, to - from + spare) };
}
function gridPart(document2, block, role, kind = "", text = "") {
  const node = document2.createElement(block === "cell" ? "span" : "div");
  node.className = `am-ledger__${block}${kind ? ` am-ledger__${block}--${kind}` : ""}`;
  node.setAttribute("role", role);
  node.append(document2.createTextNode(text));
  return node;
}
function textsOf([seq, ms, slot, turn, kind, line]) {
  const time = timeHere(ms).slice(5, -3);
  return [String(seq), time, slot, turn === null ? "" : String(turn), kind, line];
}
var DrawnRows = class {
  /** @param {HTMLElement} space that they stand in */
  constructor(space) {
    this.space = space;
    this.name = `am-ledger-${Math.random().toString(36).slice(2)}`;
    this.drawn = /* @__PURE__ */ new Map();
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
    const texts = row === void 0 ? UNKNOWN : textsOf(row);
    cells.forEach((cell, column) => {
      const shown = (
        /** @type {Text} */
        cell.firstChild
      );
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
    const document2 = this.space.ownerDocument;
    const node = gridPart(document2, "row", "row", "event");
    const cells = COLUMNS.map((column) => gridPart(document2, "cell", "gridcell", column));
    node.append(...cells);
    this.space.append(node);
    return { node, cells };
  }
};
var inSight = (grid) => ({
  first: Math.max(0, Math.floor(grid.scrollTop / ROW_PX)),
  last: Math.ceil((grid.scrollTop + grid.clientHeight - HEAD_PX) / ROW_PX)
});

// widgets/src/views/event_grid.js
var SHOWN_ROWS = 16;
var KEPT_ROWS = 4e3;
var END_PX = 2 ** 31;
var QUIET_MS = 1500;
var EventGrid = class {
  /** @param {Document} document @param {GridOptions} options */
  constructor(document2, { ask, open, escape, counted: counted2 }) {
    this.ask = ask;
    this.open = open;
    this.escape = escape;
    this.counted = counted2;
    this.wanted = { slot: null, turn: null, kinds: [], find: "" };
    this.generation = 0;
    this.total = 0;
    this.isAsking = false;
    this.isStale = false;
    this.isDrawing = false;
    this.top = 0;
    this.isAtEnd = true;
    this.active = -1;
    this.opening = -1;
    this.known = /* @__PURE__ */ new Map();
    this.node = gridPart(document2, "grid", "grid");
    this.space = gridPart(document2, "space", "rowgroup");
    this.rows = new DrawnRows(this.space);
    this.build(document2);
    this.listen();
  }
  /** @param {Document} document */
  build(document2) {
    this.node.setAttribute("aria-label", "Events");
    this.node.setAttribute("aria-readonly", "true");
    this.node.setAttribute("aria-colcount", String(COLUMNS.length));
    this.node.setAttribute("tabindex", "0");
    keepKeys(this.node);
    const head = gridPart(document2, "row", "row", "head");
    head.setAttribute("aria-rowindex", "1");
    const cells = COLUMNS.map((name) => gridPart(document2, "cell", "columnheader", name, name));
    head.append(...cells);
    this.node.append(head, this.space);
  }
  listen() {
    this.node.addEventListener("scroll", () => {
      this.noteScrolling();
      this.draw();
    });
    this.node.addEventListener("click", ({ target }) => {
      const row = (
        /** @type {Element} */
        target.closest(".am-ledger__row--event")
      );
      const at = this.rows.indexOf(row);
      if (at === void 0) return;
      this.goTo(at);
      this.openActive();
    });
    this.node.addEventListener("keydown", (event) => this.onKeydown(event));
    if (typeof ResizeObserver !== "function") return;
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
      if (this.node.clientHeight === 0) return;
      const { first, last } = inSight(this.node);
      this.rows.draw(first, last, this.total, this.active, this.known);
      this.pointAtActive();
      this.requestMissing(first, last);
    });
  }
  /** @param {number} first @param {number} last */
  requestMissing(first, last) {
    const rows = missing(this.known, first, last, this.total);
    const take = (answer) => this.take(answer);
    if (rows !== null) this.request(rows, take);
    else if (this.isStale && !this.isAsking) {
      this.isStale = false;
      this.request({ first: this.total, count: WINDOW_ROWS }, take);
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
    this.opening = row === void 0 ? this.active : -1;
    if (row !== void 0) this.open(row);
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
};

// widgets/src/views/words.js
var grouped = (count) => count.toLocaleString("en-US");
var counted = (count, noun) => `${grouped(count)} ${noun}${count === 1 ? "" : "s"}`;

// widgets/src/views/ledger_event.js
var NO_REQUEST = "no request to a model belongs to this event";
var MOST_CHARACTERS = 1e6;
var OpenedEvent = class {
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
    const texts = isNone ? [this.make("p", "label", NO_REQUEST)] : parts.flatMap((part) => this.textOf(part, seq));
    const shown = this.make("div", "request");
    shown.append(...texts);
    const others = rest.filter((each) => each.className !== shown.className);
    this.node.replaceChildren(...bar ? [bar] : [], shown, ...others);
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
};

// widgets/src/views/ledger_filters.js
var TYPING_MS = 250;
var EVERYTHING = { slot: null, turn: null, kinds: [], find: "" };
var LedgerFilters = class {
  /**
   * @param {Make} make @param {Partial<Filter>} begins
   * @param {(filter: Filter) => void} chosen
   */
  constructor(make, begins, chosen) {
    this.make = make;
    this.chosen = chosen;
    this.typing = void 0;
    this.node = make("div", "filters");
    this.node.setAttribute("role", "search");
    this.node.setAttribute("aria-label", "Which events");
    this.slot = this.choice("slot", "every slot");
    this.kind = this.choice("kind", "every kind");
    this.turn = this.field("turn", "number");
    this.turn.setAttribute("min", "1");
    this.find = this.field("find", "search");
    this.find.setAttribute("placeholder", "words");
    this.filter = { ...EVERYTHING, ...begins };
  }
  /** Whether everything is let through. */
  get isAll() {
    const { slot, turn, kinds, find } = this.filter;
    return !slot && turn === null && kinds.length === 0 && !find.trim();
  }
  /** Offer slots and kinds beside those that can be chosen. @param {string[]} slots @param {string[]} kinds */
  offer(slots, kinds) {
    this.addOptions(this.slot, slots);
    this.addOptions(this.kind, kinds);
  }
  /** Show the filter in the fields. */
  show() {
    const { slot, turn, kinds, find } = this.filter;
    this.slot.value = slot ?? "";
    this.kind.value = kinds.join(",");
    this.turn.value = turn === null ? "" : String(turn);
    this.find.value = find;
  }
  /** Choose all events of one turn. @param {string} slot @param {number} turn */
  only(slot, turn) {
    this.offer([slot], []);
    this.filter = { ...EVERYTHING, slot, turn };
    this.show();
    this.choose();
  }
  choose() {
    const turn = Number.parseInt(this.turn.value, 10);
    this.filter = {
      slot: this.slot.value || null,
      turn: turn > 0 ? turn : null,
      kinds: this.kind.value ? this.kind.value.split(",") : [],
      find: this.find.value
    };
    this.chosen(this.filter);
  }
  /** @param {string} label @param {string} type */
  field(label, type) {
    const input = this.make("input", "field");
    input.setAttribute("type", type);
    input.addEventListener("input", () => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => this.choose(), TYPING_MS);
    });
    return this.labelled(label, input);
  }
  /** @param {string} label @param {string} every */
  choice(label, every) {
    const select = this.make("select", "field");
    select.append(optionOf(this.make, "", every));
    select.addEventListener("change", () => this.choose());
    return this.labelled(label, select);
  }
  /** @template {HTMLElement} Control @param {string} label @param {Control} control */
  labelled(label, control) {
    keepKeys(control);
    const whole = this.make("label", "filter");
    whole.className += ` am-ledger__filter--${label}`;
    whole.append(this.make("span", "name", label), control);
    this.node.append(whole);
    return control;
  }
  /** @param {HTMLSelectElement} select @param {string[]} names */
  addOptions(select, names) {
    const there = new Set([...select.children].map((child) => child.getAttribute("value")));
    const others = names.filter((name) => name && !there.has(name));
    select.append(...others.map((name) => optionOf(this.make, name)));
  }
};

// widgets/src/views/ledger_style.js
var STYLE2 = `
.am-ledger { ${TEXT} margin: 4px 0; }
.am-ledger [hidden][hidden] { display: none; }
.am-ledger p.am-ledger__head { margin: 0 0 6px; overflow-wrap: anywhere; unicode-bidi: plaintext; }
.am-ledger .am-ledger__filters { display: flex; flex-wrap: wrap; gap: 4px 12px; margin: 0 0 4px; }
.am-ledger .am-ledger__filter { display: inline-flex; align-items: center; gap: 5px; min-width: 0; max-width: 100%;
  ${MUTED} }
.am-ledger .am-ledger__filter--find { flex: 1 1 160px; }
.am-ledger :is(input, select).am-ledger__field { font: inherit; box-sizing: border-box; height: 26px; min-width: 0; max-width: 16em;
  margin: 0; padding: 1px 6px; border-radius: 3px; color: var(--jp-ui-font-color1, FieldText);
  background: var(--jp-layout-color1, Field); border: 1px solid var(--jp-border-color1, rgba(128, 128, 128, .6)); }
.am-ledger input.am-ledger__field[type="number"] { width: 6em; }
.am-ledger .am-ledger__filter--find input.am-ledger__field { flex: 1; max-width: none; }
.am-ledger p.am-ledger__count { margin: 0 0 4px; ${MUTED} font-variant-numeric: tabular-nums; }
.am-ledger .am-ledger__event { margin-top: 6px; padding: 6px 10px 10px; border-radius: 3px;
  border: ${EDGE}; }
.am-ledger .am-ledger__bar { display: flex; flex-wrap: wrap; align-items: center; gap: 4px 8px; }
.am-ledger .am-ledger__facts { flex: 1 1 14em; overflow-wrap: anywhere; unicode-bidi: plaintext; font-variant-numeric: tabular-nums; }
.am-ledger p.am-ledger__label { margin: 8px 0 2px; font-size: .9em; ${MUTED} overflow-wrap: anywhere; }
.am-ledger pre.am-ledger__text { margin: 0; padding: 6px 8px; max-height: 360px; overflow: auto; border-radius: 3px;
  white-space: pre-wrap; word-break: normal; overflow-wrap: anywhere; unicode-bidi: plaintext; color: inherit;
  ${CODE_FONT}
  border: 1px solid var(--jp-border-color2, rgba(128, 128, 128, .35)); background: var(--jp-cell-editor-background, transparent); }
.am-ledger button.am-ledger__button { font: inherit; color: inherit; cursor: pointer; padding: 2px 10px; border-radius: 3px;
  border: ${CONTROL_EDGE}; background: var(--jp-layout-color1, transparent); }
.am-ledger button.am-ledger__button:hover { ${HOVERED} }
.am-ledger pre.am-ledger__text + button.am-ledger__button { margin-top: 4px; }
.am-ledger :is(button, input, select, pre, .am-ledger__grid):focus-visible {
  ${FOCUS_RING} outline-offset: 1px; }
.am-ledger .am-ledger__spoken { ${SPOKEN_ONLY} }
`;

// widgets/src/views/ledger_explorer.js
function saidCount(total, every, isAll) {
  if (total === null) return "waiting for the kernel…";
  const events = counted(every, "event");
  if (isAll) return events;
  return total === 0 ? `no event matches, of ${grouped(every)}` : `${grouped(total)} of ${events}`;
}
var ledgerExplorer = (root, options) => new LedgerExplorer(root, options);
var LedgerExplorer = class {
  /** @param {HTMLElement} root @param {Options} options */
  constructor(root, { ask, begins = {}, state, chosen = () => {
  } }) {
    const make = makerOf(root.ownerDocument, "am-ledger");
    this.state = state;
    this.head = make("p", "head");
    this.filters = new LedgerFilters(make, begins, (filter) => {
      chosen(filter);
      this.grid.filter(filter);
    });
    this.count = make("p", "count");
    this.count.setAttribute("role", "status");
    this.opened = new OpenedEvent({
      make,
      ask,
      closed: () => this.grid.focus(),
      only: (slot, turn) => {
        this.filters.only(slot, turn);
        this.grid.focus();
      }
    });
    this.grid = new EventGrid(root.ownerDocument, {
      ask,
      open: ([seq]) => this.opened.open(seq, false),
      escape: () => this.opened.close(),
      counted: (total) => this.showCount(total)
    });
    const box = make("div", "box");
    box.className = "am-ledger";
    const { head, filters, count, grid, opened } = this;
    box.append(head, filters.node, count, grid.node, opened.node, opened.spoken);
    root.style.setProperty("container-type", "inline-size");
    mount(root, STYLE2 + STYLE, box);
    this.begin();
  }
  begin() {
    const { filter } = this.filters;
    const { title, slots, kinds } = this.state;
    this.filters.offer([...slots, filter.slot ?? ""], [...kinds, filter.kinds.join(",")]);
    this.filters.show();
    this.head.textContent = `ledger of ${title}`;
    this.grid.filter(filter);
  }
  /** @param {LedgerState} state */
  update(state) {
    this.state = state;
    this.head.textContent = `ledger of ${state.title}`;
    this.filters.offer(state.slots, state.kinds);
    this.grid.grow(this.filters.isAll ? state.total : null);
  }
  /** @param {number | null} total */
  showCount(total) {
    const every = Math.max(this.state.total, total ?? 0);
    this.count.textContent = saidCount(total, every, this.filters.isAll);
  }
};

// widgets/src/entries/ledger_explorer.js
var ledger_explorer_default = liveLedger(ledgerExplorer);
export {
  ledger_explorer_default as default
};
