// Slot tabs: the branches of a session as a tree, the way to each, and what can be done to it.
// Draws the session state (agent_magics/notebook/views/session_state.py); text is only ever set as text. What is
// done goes out as the messages of agent_magics/notebook/views/slots/slot_actions.py.

/**
 * @typedef {{id: string, mode: string, mode_label: string, parent: string | null,
 *   forked_at_turn: number | null, depth: number, turns: number, messages: number,
 *   tokens: number, is_current: boolean, is_running: boolean, model: string | null}} SlotState
 * @typedef {{title: string, model: string, is_readonly: boolean, current: string,
 *   slots: SlotState[]}} SessionState
 * @typedef {{number?: number, text?: string, is_refused?: boolean, undo?: string | null}} Notice
 */

// Each rule outweighs those of JupyterLab for what stands in an HTML output.
const STYLE = `
.am-tabs { font: var(--jp-ui-font-size1, 13px)/1.4 var(--jp-ui-font-family, system-ui, sans-serif);
  color: var(--jp-ui-font-color1, var(--vscode-foreground, CanvasText)); margin: 4px 0; max-width: 760px; }
.am-tabs [hidden] { display: none !important; }
.am-tabs .am-tabs__head { color: var(--jp-ui-font-color2, inherit); margin: 0 0 6px; overflow-wrap: anywhere; }
.am-tabs .am-tabs__list { max-height: 22em; overflow: auto; padding: 3px; border-radius: 4px;
  border: 1px solid var(--jp-border-color1, rgba(128, 128, 128, .5)); }
.am-tabs .am-tabs__tab { display: flex; flex-wrap: wrap; align-items: baseline; gap: 0 12px; cursor: pointer;
  padding: 4px 8px; border-radius: 3px; border-inline-start: 3px solid transparent; }
.am-tabs .am-tabs__tab:hover { background: var(--jp-layout-color2, rgba(128, 128, 128, .15)); }
.am-tabs :focus-visible { outline: 2px solid var(--jp-brand-color1, var(--vscode-focusBorder, LinkText)); outline-offset: -1px; }
.am-tabs .am-tabs__tab[aria-selected="true"] { background: var(--jp-layout-color2, rgba(128, 128, 128, .15));
  border-inline-start-color: var(--jp-brand-color1, var(--vscode-focusBorder, LinkText)); }
.am-tabs .am-tabs__tab[aria-selected="true"] .am-tabs__name { font-weight: 600; }
.am-tabs .am-tabs__name { flex: 1 1 12em; min-width: 0; overflow-wrap: anywhere; }
.am-tabs .am-tabs__branch { white-space: pre; color: var(--jp-ui-font-color2, inherit); font-weight: 400; }
.am-tabs .am-tabs__mode { margin-inline-start: 6px; padding: 0 5px; border-radius: 3px; font-size: .85em; font-weight: 400;
  white-space: nowrap; border: 1px solid var(--jp-border-color1, rgba(128, 128, 128, .5)); }
.am-tabs .am-tabs__facts { font-variant-numeric: tabular-nums; white-space: nowrap; }
.am-tabs .am-tabs__facts, .am-tabs .am-tabs__from { font-size: .9em; color: var(--jp-ui-font-color2, inherit); }
.am-tabs .am-tabs__from { flex-basis: 100%; padding-inline-start: calc(1.2em * var(--am-depth, 0)); overflow-wrap: anywhere; }
.am-tabs .am-tabs__tab:is(:hover, [aria-selected="true"]) :is(.am-tabs__facts, .am-tabs__from, .am-tabs__branch) { color: inherit; }
.am-tabs .am-tabs__bar, .am-tabs .am-tabs__form { display: flex; flex-wrap: wrap; align-items: center; gap: 6px; margin: 6px 0 0; }
.am-tabs .am-tabs__on { min-width: 0; max-width: 100%; overflow-wrap: anywhere; }
.am-tabs .am-tabs__button, .am-tabs .am-tabs__field { font: inherit; color: inherit; padding: 2px 9px; border-radius: 3px;
  border: 1px solid var(--jp-border-color0, rgba(128, 128, 128, .7)); background: var(--jp-layout-color1, transparent); }
.am-tabs .am-tabs__field { min-width: 0; max-width: 100%; box-sizing: border-box; }
.am-tabs input[type="number"].am-tabs__field { width: 6em; }
.am-tabs .am-tabs__button { cursor: pointer; }
.am-tabs .am-tabs__button:hover { background: var(--jp-layout-color2, rgba(128, 128, 128, .15)); }
.am-tabs .am-tabs__notice { display: inline; margin: 0; margin-inline-end: 8px; overflow-wrap: anywhere; }
.am-tabs .am-tabs__notice--refused { color: var(--jp-error-color1, inherit); }
.am-tabs .am-tabs__said { margin: 6px 0 0; min-height: 1.4em; }
`;

const STEPS = { ArrowDown: 1, ArrowUp: -1 };
const DEEPEST = 8; // further levels are told in words only
/** The live parts of what was drawn into a root. @type {WeakMap<HTMLElement, Tabs>} */
const DRAWN_TABS = new WeakMap();

/** @param {number} count @param {string} noun */
function counted(count, noun) {
  return `${count.toLocaleString("en-US")} ${noun}${count === 1 ? "" : "s"}`;
}

/** @param {SlotState} slot */
function origin(slot) {
  if (slot.parent === null) return "";
  return `from ${slot.parent}` + (slot.forked_at_turn ? ` at turn ${slot.forked_at_turn}` : "");
}

/** What a screen reader says of a tab. @param {SlotState} slot */
export function spokenName(slot) {
  const facts = [slot.id, slot.mode_label, counted(slot.turns, "turn"), counted(slot.tokens, "token")];
  if (origin(slot)) facts.push(origin(slot));
  if (slot.model !== null) facts.push(slot.model);
  if (slot.is_running) facts.push("running");
  return facts.join(", ");
}

/** Name the slot that stands at `at`, else the current one, else the first. */
function standing(slots, at) {
  return (slots.find((slot) => slot.id === at) ?? slots.find((slot) => slot.is_current) ?? slots[0])?.id ?? null;
}

/** Do what a key means, and let nobody else have it. @param {Event} event @param {() => void} doing */
function taken(event, doing) {
  event.preventDefault();
  event.stopPropagation();
  doing();
}

/** The tabs in one root: made once, so that focus, typing and the live region outlast each change. */
class Tabs {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.document = root.ownerDocument;
    this.slots = [];
    this.rows = new Map();
    this.at = null; // the slot that the buttons are about
    this.send = () => {};
    this.said = 0;
    this.follows = null; // the name that `at` goes to when it is there
    this.sent = null; // the form that was sent last, until it is answered
    this.head = this.make("p", "head");
    this.list = this.make("div", "list");
    this.list.setAttribute("role", "tree");
    this.list.addEventListener("keydown", (event) => this.pressed(event));
    this.on = this.make("span", "on");
    this.bar = this.make("div", "bar");
    this.bar.setAttribute("role", "group");
    this.form = this.make("div", "form");
    this.form.setAttribute("role", "group");
    this.form.hidden = true;
    this.form.addEventListener("keydown", (event) => {
      if (event.key === "Escape") taken(event, () => this.close({ focuses: true }));
      else if (event.key === "Enter") taken(event, () => this.submit());
    });
    this.notice = this.make("p", "notice");
    this.notice.setAttribute("role", "status");
    this.undo = this.button("Undo", () => this.undone());
    this.undo.hidden = true;
    const said = this.make("div", "said");
    said.append(this.notice, this.undo);
    this.bar.append(
      this.on,
      this.button("Derive here…", () => this.openDerive()),
      this.button("Rename…", () => this.openRename()),
      this.button("Mode…", () => this.openMode()),
      this.button("Delete…", () => this.openDelete()),
    );
    const style = this.document.createElement("style");
    style.textContent = STYLE;
    const box = this.make("div", "box");
    box.className = "am-tabs";
    // JupyterLab looks for it on what has the focus; without it x cuts the cell.
    box.addEventListener("focusin", ({ target }) => target.setAttribute("data-lm-suppress-shortcuts", "true"));
    box.append(this.head, this.list, this.bar, this.form, said);
    root.style.setProperty("container-type", "inline-size");
    root.replaceChildren(style, box);
  }

  /** @param {string} tag @param {string} name @param {string} [text] */
  make(tag, name, text = "") {
    const node = this.document.createElement(tag);
    node.className = `am-tabs__${name}`;
    node.textContent = text;
    return node;
  }

  /** @param {string} label @param {() => void} press */
  button(label, press) {
    const node = this.make("button", "button", label);
    node.setAttribute("type", "button");
    node.addEventListener("click", press);
    // JupyterLab takes Enter in command mode, and no click would come of it.
    node.addEventListener("keydown", (event) => event.key === "Enter" && taken(event, press));
    return node;
  }

  /** @param {SessionState} state @param {Notice} notice @param {(message: object) => void} send */
  update(state, notice, send) {
    this.send = send;
    const active = this.document.activeElement;
    const hadFocus = this.list.contains(active);
    if (hadFocus) this.at = active.getAttribute("data-slot") ?? this.at;
    const wentOn = this.slots.find((slot) => slot.is_current)?.id;
    this.slots = state.slots ?? [];
    this.head.textContent = `${state.title} · ${state.model}${state.is_readonly ? " · read-only" : ""}`;
    this.list.setAttribute("aria-label", `Slots of ${state.title}`);
    this.bar.hidden = state.is_readonly || this.slots.length === 0;
    if (state.is_readonly) this.close();
    const names = new Set(this.slots.map((slot) => slot.id));
    const current = this.slots.find((slot) => slot.is_current)?.id;
    if (this.follows !== null && names.has(this.follows)) this.at = this.follows;
    else if (current !== wentOn && !hadFocus && this.form.hidden) this.at = current ?? null;
    else if (!names.has(this.at)) this.at = current ?? null; // what was deleted left nobody else in danger
    if (names.has(this.follows)) this.follows = null;
    if (!this.form.hidden && !names.has(this.about)) this.close();
    this.drawRows(names);
    this.stand(standing(this.slots, this.at), { focuses: hadFocus });
    this.tell(notice);
  }

  /** @param {Set<string>} names */
  drawRows(names) {
    for (const id of this.rows.keys()) if (!names.has(id)) this.rows.delete(id);
    const nodes = this.slots.map((slot) => {
      const row = this.rows.get(slot.id) ?? this.makeRow(slot.id);
      const shown = JSON.stringify(slot);
      if (row.shown !== shown) this.fill(row.node, slot);
      row.shown = shown;
      return row.node;
    });
    const isSame = nodes.length === this.list.children.length && nodes.every((node, i) => node === this.list.children[i]);
    if (!isSame) this.list.replaceChildren(...nodes);
  }

  /** @param {string} id */
  makeRow(id) {
    const node = this.make("div", "tab");
    node.setAttribute("role", "treeitem");
    node.setAttribute("data-slot", id);
    node.addEventListener("click", () => {
      this.stand(id, { focuses: true });
      this.go(id);
    });
    node.addEventListener("focus", () => this.at === id || this.stand(id));
    const row = { node, shown: "" };
    this.rows.set(id, row);
    return row;
  }

  /** @param {HTMLElement} tab @param {SlotState} slot */
  fill(tab, slot) {
    tab.setAttribute("aria-selected", String(slot.is_current));
    tab.setAttribute("aria-level", String(slot.depth + 1));
    tab.setAttribute("aria-label", spokenName(slot));
    const depth = Math.min(slot.depth, DEEPEST);
    tab.style.setProperty("--am-depth", String(depth));
    const name = this.make("span", "name");
    if (depth > 0) name.append(this.make("span", "branch", `${"   ".repeat(depth - 1)}└ `));
    const id = this.make("bdi", "id", slot.id);
    name.append(id);
    if (slot.mode !== "full") name.append(this.make("span", "mode", slot.mode_label));
    if (slot.is_running) name.append(this.make("span", "mode", "running"));
    tab.replaceChildren(name, this.make("span", "facts", `${counted(slot.turns, "turn")} · ${counted(slot.tokens, "token")}`));
    const notes = [origin(slot), slot.model ?? ""].filter(Boolean).join(" · ");
    if (notes) tab.append(this.make("span", "from", notes));
  }

  /** Let the buttons be about a slot, and the Tab key reach it. @param {string | null} id */
  stand(id, { focuses = false } = {}) {
    this.rows.get(this.at)?.node.setAttribute("tabindex", "-1");
    for (const [name, row] of this.rows) row.node.setAttribute("tabindex", name === id ? "0" : "-1");
    this.at = id;
    this.on.textContent = "";
    this.on.append(this.make("bdi", "target", id ?? ""), this.make("span", "colon", ":"));
    this.bar.setAttribute("aria-label", `Actions on ${id}`);
    const node = this.rows.get(id)?.node;
    if (focuses && node && this.document.activeElement !== node) node.focus();
  }

  /** @param {string} id */
  go(id) {
    if (!this.slots.find((slot) => slot.id === id)?.is_current) this.send({ kind: "switch", slot: id });
  }

  /** @param {KeyboardEvent} event */
  pressed(event) {
    const place = this.slots.findIndex((slot) => slot.id === this.at);
    const doing = this.keyed(event.key, place);
    if (place >= 0 && doing && !event.ctrlKey && !event.metaKey && !event.altKey) taken(event, doing);
  }

  /** @param {string} key @param {number} place @returns {(() => void) | null} */
  keyed(key, place) {
    const to = (index) => () => this.stand(this.slots[index].id, { focuses: true });
    const last = this.slots.length - 1;
    const parent = this.slots.findIndex((slot) => slot.id === this.slots[place]?.parent);
    const child = this.slots.findIndex((slot) => slot.parent === this.at);
    const canChange = !this.bar.hidden;
    if (key in STEPS) return to(Math.max(0, Math.min(last, place + STEPS[key])));
    if (key === "Home" || key === "End") return to(key === "Home" ? 0 : last);
    if (key === "ArrowLeft") return to(parent < 0 ? place : parent);
    if (key === "ArrowRight") return to(child < 0 ? place : child);
    if (key === "Enter" || key === " ") return () => this.go(this.at);
    if (key === "F2" && canChange) return () => this.openRename();
    if (key === "Delete" && canChange) return () => this.openDelete();
    return null;
  }

  /**
   * Ask for what an action needs, in a row of fields; Enter sends it, Escape leaves it.
   * @param {string} label @param {string} does @param {HTMLElement[]} fields @param {() => object | null} message
   */
  open(label, does, fields, message) {
    this.about = this.at;
    this.opened = [label, does, fields, message];
    const yes = this.button(does, () => this.submit());
    this.message = message;
    this.form.setAttribute("aria-label", label);
    const cancel = this.button("Cancel", () => this.close({ focuses: true }));
    this.form.replaceChildren(this.make("span", "on", label), ...fields, yes, cancel);
    this.form.hidden = false;
    (fields[0] ?? yes).focus();
    fields[0]?.select?.();
  }

  submit() {
    const made = this.message();
    if (made === null) return;
    const form = { about: this.about, opened: this.opened };
    this.close({ focuses: true });
    this.sent = form;
    this.send(made);
  }

  close({ focuses = false } = {}) {
    this.form.hidden = true;
    this.form.replaceChildren();
    if (focuses) this.stand(this.at, { focuses: true });
  }

  /** @param {string} label @param {string} value */
  nameField(label, value) {
    const field = this.make("input", "field");
    field.setAttribute("aria-label", label);
    field.setAttribute("maxlength", "128");
    field.setAttribute("dir", "auto");
    field.setAttribute("autocomplete", "off");
    field.setAttribute("spellcheck", "false");
    field.value = value;
    return field;
  }

  openDerive() {
    const [slot, field] = [this.at, this.nameField("Name of the new slot", "")];
    this.open(`New slot from ${slot}, named`, "Derive", [field], () => this.named("derive", slot, field));
  }

  openRename() {
    const slot = this.at;
    const field = this.nameField(`New name of ${slot}`, slot ?? "");
    this.open(`Rename ${slot} to`, "Rename", [field], () => this.named("rename", slot, field));
  }

  named(kind, slot, field) {
    const name = field.value.trim();
    if (!name || name === slot) {
      field.focus();
      return null;
    }
    this.follows = name;
    return { kind, slot, name };
  }

  openMode() {
    const slot = this.at;
    const now = this.slots.find((each) => each.id === slot);
    const mode = this.make("select", "field");
    mode.setAttribute("aria-label", `What the model sees of ${slot}`);
    for (const name of ["full", "focused", "readonly"]) {
      const choice = this.make("option", "choice", name);
      choice.setAttribute("value", name);
      mode.append(choice);
    }
    mode.value = now?.mode ?? "full";
    const count = this.make("input", "field");
    count.setAttribute("type", "number");
    count.setAttribute("min", "1");
    count.setAttribute("aria-label", "How many of the newest messages");
    count.value = /\d+/.exec(now?.mode === "focused" ? now.mode_label : "")?.[0] ?? "10";
    const adapt = () => {
      count.hidden = mode.value !== "focused";
    };
    mode.addEventListener("change", adapt);
    adapt();
    this.open(`Mode of ${slot}`, "Set", [mode, count], () => {
      const made = { kind: "mode", slot, mode: mode.value };
      return mode.value === "focused" ? { ...made, count: Math.max(1, Math.trunc(Number(count.value)) || 10) } : made;
    });
  }

  openDelete() {
    const slot = this.at;
    this.open(`Delete ${slot}? Its log is kept.`, "Delete", [], () => ({ kind: "delete", slot }));
  }

  undone() {
    if (this.undoes) this.send({ kind: "undo", uid: this.undoes });
    this.stand(this.at, { focuses: true });
  }

  /** Give a form that was refused back as it was sent, where nobody went elsewhere meanwhile. */
  openAgain() {
    if (this.sent === null || !this.form.hidden || !this.slots.some(({ id }) => id === this.sent.about)) return;
    this.stand(this.sent.about);
    this.open(...this.sent.opened);
  }

  /** Say what was done or refused, once. @param {Notice} notice */
  tell(notice) {
    if ((notice.number ?? 0) === this.said) return;
    this.said = notice.number ?? 0;
    if (notice.is_refused) {
      this.follows = null;
      this.openAgain();
    }
    this.sent = null;
    this.notice.className = `am-tabs__notice${notice.is_refused ? " am-tabs__notice--refused" : ""}`;
    this.notice.textContent = notice.text ?? "";
    this.undoes = notice.undo ?? null;
    this.undo.hidden = !this.undoes;
  }
}

/**
 * Draw the tabs into `root`, or bring what it drew there up to date. `send(message)` is called for
 * what a person does; `notice` is the sentence that came of it.
 * @param {HTMLElement} root @param {SessionState} state
 * @param {{send?: (message: object) => void, notice?: Notice}} [options]
 */
export function slotTabs(root, state, { send = () => {}, notice = {} } = {}) {
  const tabs = DRAWN_TABS.get(root) ?? new Tabs(root);
  DRAWN_TABS.set(root, tabs);
  tabs.update(state, notice, send);
}
