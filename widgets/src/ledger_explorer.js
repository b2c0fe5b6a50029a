// Ledger explorer: every event of a session in a grid, filtered, and each opened to its content.
// Stands after event_grid.js; told by notebook/views/ledger/ledger_view.py. Text is only ever set as text.

/**
 * @typedef {{title: string, total: number, slots: string[], kinds: string[]}} LedgerState
 * @typedef {{label: string, text: string, characters: number}} Part
 * @typedef {{ask: (message: object) => Promise<any>, begins?: object, state: LedgerState,
 *   chosen?: (filter: object) => void}} Options
 */

const TYPING_MS = 250;
const NO_REQUEST = "no request to a model belongs to this event";
const MOST_CHARACTERS = 1_000_000; // as the kernel sends of one part

// Each rule outweighs those of JupyterLab for what stands in an HTML output.
const LEDGER_STYLE = `
.am-ledger { font: var(--jp-ui-font-size1, 13px)/1.4 var(--jp-ui-font-family, system-ui, sans-serif);
  color: var(--jp-ui-font-color1, var(--vscode-foreground, CanvasText)); margin: 4px 0; }
.am-ledger [hidden][hidden] { display: none; }
.am-ledger p.am-ledger__head { margin: 0 0 6px; overflow-wrap: anywhere; unicode-bidi: plaintext; }
.am-ledger .am-ledger__filters { display: flex; flex-wrap: wrap; gap: 4px 12px; margin: 0 0 4px; }
.am-ledger .am-ledger__filter { display: inline-flex; align-items: center; gap: 5px; min-width: 0; max-width: 100%;
  color: var(--jp-ui-font-color2, inherit); }
.am-ledger .am-ledger__filter--find { flex: 1 1 160px; }
.am-ledger :is(input, select).am-ledger__field { font: inherit; box-sizing: border-box; height: 26px; min-width: 0; max-width: 16em;
  margin: 0; padding: 1px 6px; border-radius: 3px; color: var(--jp-ui-font-color1, FieldText);
  background: var(--jp-layout-color1, Field); border: 1px solid var(--jp-border-color1, rgba(128, 128, 128, .6)); }
.am-ledger input.am-ledger__field[type="number"] { width: 6em; }
.am-ledger .am-ledger__filter--find input.am-ledger__field { flex: 1; max-width: none; }
.am-ledger p.am-ledger__count { margin: 0 0 4px; color: var(--jp-ui-font-color2, inherit); font-variant-numeric: tabular-nums; }
.am-ledger .am-ledger__event { margin-top: 6px; padding: 6px 10px 10px; border-radius: 3px;
  border: 1px solid var(--jp-border-color1, rgba(128, 128, 128, .5)); }
.am-ledger .am-ledger__bar { display: flex; flex-wrap: wrap; align-items: center; gap: 4px 8px; }
.am-ledger .am-ledger__facts { flex: 1 1 14em; overflow-wrap: anywhere; unicode-bidi: plaintext; font-variant-numeric: tabular-nums; }
.am-ledger p.am-ledger__label { margin: 8px 0 2px; font-size: .9em; color: var(--jp-ui-font-color2, inherit); overflow-wrap: anywhere; }
.am-ledger pre.am-ledger__text { margin: 0; padding: 6px 8px; max-height: 360px; overflow: auto; border-radius: 3px;
  white-space: pre-wrap; word-break: normal; overflow-wrap: anywhere; unicode-bidi: plaintext; color: inherit;
  font: var(--jp-code-font-size, 13px)/1.4 var(--jp-code-font-family, monospace);
  border: 1px solid var(--jp-border-color2, rgba(128, 128, 128, .35)); background: var(--jp-cell-editor-background, transparent); }
.am-ledger button.am-ledger__button { font: inherit; color: inherit; cursor: pointer; padding: 2px 10px; border-radius: 3px;
  border: 1px solid var(--jp-border-color0, rgba(128, 128, 128, .7)); background: var(--jp-layout-color1, transparent); }
.am-ledger button.am-ledger__button:hover { background: var(--jp-layout-color2, rgba(128, 128, 128, .15)); }
.am-ledger pre.am-ledger__text + button.am-ledger__button { margin-top: 4px; }
.am-ledger :is(button, input, select, pre, .am-ledger__grid):focus-visible {
  outline: 2px solid var(--jp-brand-color1, var(--vscode-focusBorder, LinkText)); outline-offset: 1px; }
.am-ledger .am-ledger__spoken { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
`;

/** @param {number} count */
const inThousands = (count) => count.toLocaleString("en-US");

/** Say how many events are shown. @param {number | null} total @param {number} every @param {boolean} isAll */
export function saidCount(total, every, isAll) {
  if (total === null) return "waiting for the kernel…";
  const events = `${inThousands(every)} event${every === 1 ? "" : "s"}`;
  if (isAll) return events;
  return total === 0 ? `no event matches, of ${inThousands(every)}` : `${inThousands(total)} of ${events}`;
}

/**
 * Draw an explorer into `root`; it stays there and keeps what a person chose. `update(state)` tells of
 * a ledger that grew.
 * @param {HTMLElement} root @param {Options} options
 */
export function ledgerExplorer(root, { ask, begins = {}, state, chosen = () => {} }) {
  const document = root.ownerDocument;
  /** @param {string} tag @param {string} name @param {string} [text] */
  const make = (tag, name, text = "") => {
    const node = document.createElement(tag);
    node.className = `am-ledger__${name}`;
    node.textContent = text;
    return node;
  };
  let filter = { slot: null, turn: null, kinds: [], find: "", ...begins };
  let typing;

  const head = make("p", "head");
  const filters = make("div", "filters");
  filters.setAttribute("role", "search");
  filters.setAttribute("aria-label", "Which events");
  const [slot, kind] = [choice("slot", "every slot"), choice("kind", "every kind")];
  const turn = field("turn", "number");
  turn.setAttribute("min", "1");
  const find = field("find", "search");
  find.setAttribute("placeholder", "words");
  const count = make("p", "count");
  count.setAttribute("role", "status");
  const opened = make("div", "event");
  opened.setAttribute("role", "region");
  opened.hidden = true;
  const spoken = make("p", "spoken");
  spoken.setAttribute("role", "status");
  const grid = eventGrid(document, { ask, open: (row) => open(row[0], false), escape: close, counted });

  const style = document.createElement("style");
  style.textContent = LEDGER_STYLE + GRID_STYLE;
  const box = make("div", "box");
  box.className = "am-ledger";
  box.append(head, filters, count, grid.node, opened, spoken);
  root.style.setProperty("container-type", "inline-size");
  root.replaceChildren(style, box);

  /** @param {string} label @param {HTMLElement} control */
  function labelled(label, control) {
    const whole = make("label", "filter");
    whole.className += ` am-ledger__filter--${label}`;
    whole.append(make("span", "name", label), control);
    filters.append(whole);
    return control;
  }

  /** @param {string} label @param {string} type */
  function field(label, type) {
    const input = make("input", "field");
    input.setAttribute(OURS, "true");
    input.setAttribute("type", type);
    input.addEventListener("input", () => {
      clearTimeout(typing);
      typing = setTimeout(choose, TYPING_MS);
    });
    return labelled(label, input);
  }

  /** @param {string} label @param {string} every */
  function choice(label, every) {
    const select = make("select", "field");
    select.setAttribute(OURS, "true");
    select.append(option("", every));
    select.addEventListener("change", choose);
    return labelled(label, select);
  }

  /** @param {string} value @param {string} text */
  function option(value, text) {
    const made = make("option", "option", text);
    made.setAttribute("value", value);
    return made;
  }

  /** Offer names in a select beside those that are there. @param {HTMLElement} select @param {string[]} names */
  function offer(select, names) {
    const there = new Set([...select.children].map((child) => child.getAttribute("value")));
    select.append(...names.filter((each) => each && !there.has(each)).map((each) => option(each, each)));
  }

  function choose() {
    const number = Number.parseInt(turn.value, 10);
    filter = {
      slot: slot.value || null,
      turn: number > 0 ? number : null,
      kinds: kind.value ? kind.value.split(",") : [],
      find: find.value,
    };
    chosen(filter);
    grid.filter(filter);
  }

  const isAll = () => !filter.slot && filter.turn === null && filter.kinds.length === 0 && !filter.find.trim();

  /** @param {number | null} total */
  function counted(total) {
    count.textContent = saidCount(total, Math.max(state.total, total ?? 0), isAll());
  }

  /** @param {number} seq @param {boolean} whole */
  function open(seq, whole) {
    void ask({ kind: "event", seq, whole }).then(show);
  }

  function close() {
    if (opened.hidden) return false;
    opened.hidden = true;
    opened.replaceChildren();
    spoken.textContent = "";
    grid.focus();
    return true;
  }

  /** @param {string} text @param {() => void} act */
  function button(text, act) {
    const pressed = make("button", "button", text);
    pressed.setAttribute("type", "button");
    pressed.setAttribute(OURS, "true");
    pressed.addEventListener("click", act);
    return pressed;
  }

  /** @param {{row: Row | null, parts: Part[]}} told */
  function show(told) {
    if (told.row === null) return;
    const [seq, ms, inSlot, inTurn, ofKind, , tokens] = told.row;
    const facts = [`seq ${seq}`, ofKind, inSlot, inTurn === null ? "" : `turn ${inTurn}`, timeHere(ms)];
    facts.push(tokens ? `${inThousands(tokens)} tokens` : "");
    const bar = make("div", "bar");
    bar.append(make("span", "facts", facts.filter(Boolean).join(" · ")));
    if (inTurn !== null) {
      bar.append(button("request", () => void ask({ kind: "request", seq }).then((made) => add(seq, made))));
      bar.append(button("only this turn", () => only(inSlot, inTurn)));
    }
    bar.append(button("close", close));
    opened.setAttribute("aria-label", `Event ${seq}`);
    opened.hidden = false;
    opened.replaceChildren(bar, ...told.parts.flatMap((part) => textOf(part, seq)));
    spoken.textContent = `event ${seq} is open below`;
  }

  /** Show the request of an event that is open, above what it says. @param {number} seq @param {{parts: Part[]}} made */
  function add(seq, made) {
    if (opened.getAttribute("aria-label") !== `Event ${seq}`) return;
    const [bar, ...rest] = opened.children;
    const said = made.parts.length ? made.parts.flatMap((part) => textOf(part, seq)) : [make("p", "label", NO_REQUEST)];
    const shown = make("div", "request");
    shown.append(...said);
    opened.replaceChildren(bar, shown, ...rest.filter((each) => each.className !== shown.className));
    spoken.textContent = said[0].textContent;
  }

  /** @param {Part} part @param {number} seq */
  function textOf(part, seq) {
    const text = make("pre", "text", part.text);
    text.setAttribute("tabindex", "0");
    text.setAttribute(OURS, "true");
    text.setAttribute("role", "group");
    text.setAttribute("aria-label", part.label);
    const shown = [make("p", "label", part.label), text];
    const size = `${inThousands(part.characters)} characters`;
    if (part.text.length >= part.characters) return shown;
    if (part.text.length < MOST_CHARACTERS) return [...shown, button(`show all ${size}`, () => open(seq, true))];
    const first = `the first ${inThousands(part.text.length)} of ${size}; %ledger --df has all of it`;
    return [...shown, make("p", "label", first)];
  }

  /** @param {string} inSlot @param {number} inTurn */
  function only(inSlot, inTurn) {
    offer(slot, [inSlot]);
    [slot.value, turn.value, kind.value, find.value] = [inSlot, String(inTurn), "", ""];
    choose();
    grid.focus();
  }

  opened.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    close();
  });

  /** @param {LedgerState} now */
  function update(now) {
    state = now;
    head.textContent = `ledger of ${state.title}`;
    offer(slot, state.slots);
    offer(kind, state.kinds);
    grid.grow(isAll() ? state.total : null);
  }

  offer(slot, [...state.slots, filter.slot ?? ""]);
  offer(kind, [...state.kinds, filter.kinds.join(",")]);
  slot.value = filter.slot ?? "";
  kind.value = filter.kinds.join(",");
  turn.value = filter.turn === null ? "" : String(filter.turn);
  find.value = filter.find;
  head.textContent = `ledger of ${state.title}`;
  grid.filter(filter);
  return { update };
}
