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
var keepKeysIn = (box) => box.addEventListener("focusin", ({ target }) => keepKeys(
  /** @type {Element} */
  target
));
function consume(event, act) {
  event.preventDefault();
  event.stopPropagation();
  act();
}
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

// widgets/src/live/state.js
function withDelta(state, delta) {
  const isList = Array.isArray(state);
  const made = new Map(isList ? state.map((one) => [one.id, one]) : Object.entries(state));
  for (const [key, value] of Object.entries(delta.set ?? {})) made.set(key, value);
  for (const [key, within] of Object.entries(delta.in ?? {})) {
    made.set(key, withDelta(made.get(key), within));
  }
  if (!isList) return Object.fromEntries(made);
  return (delta.order ?? state.map((one) => one.id)).map((id) => made.get(id));
}
function followState(model, changed) {
  let [state, number] = [model.get("state"), model.get("number") ?? 0];
  const takeWhole = () => {
    if (state === model.get("state") && number === model.get("number")) return;
    [state, number] = [model.get("state"), model.get("number") ?? 0];
    changed();
  };
  const takeDelta = (message) => {
    if (message?.kind !== "delta" || message.number <= number) return;
    if (message.number !== number + 1) {
      model.send({ kind: "whole", number });
      return;
    }
    [state, number] = [withDelta(state, message.delta), message.number];
    changed();
  };
  model.on("change:state", takeWhole);
  model.on("change:number", takeWhole);
  model.on("msg:custom", takeDelta);
  model.send({ kind: "whole", number });
  const leave = () => {
    model.off("change:state", takeWhole);
    model.off("change:number", takeWhole);
    model.off("msg:custom", takeDelta);
  };
  return { now: () => state, leave };
}

// widgets/src/live/live.js
var live = (draw) => () => {
  const placed = /* @__PURE__ */ new Set();
  let drawIn = () => {
  };
  function initialize({ model }) {
    const versions = /* @__PURE__ */ new WeakMap();
    let version = 0;
    let following = null;
    const changed = () => {
      version += 1;
      following?.look();
      placed.forEach(drawIn);
    };
    const state = followState(model, changed);
    drawIn = (root) => {
      if (versions.get(root) === version) return;
      versions.set(root, version);
      draw(root, state.now(), {
        notice: model.get("notice"),
        send: (message) => model.send(message)
      });
    };
    const see = (output) => drawIn(drawnIn(output) ?? replaceStatic(output));
    following = followOutputs(model, see, () => {
      state.leave();
      model.off("change:notice", changed);
    });
    model.on("change:notice", changed);
    return following.end;
  }
  function render({ el }) {
    const root = placeRoot(el);
    placed.add(root);
    drawIn(root);
    return () => placed.delete(root);
  }
  return { initialize, render };
};

// widgets/src/views/slot_form.js
var MODES = ["full", "focused", "readonly"];
function actionButton(make, label, press) {
  const button = buttonOf(make, label, press);
  button.addEventListener("keydown", (event) => event.key === "Enter" && consume(event, press));
  return button;
}
var FormRow = class {
  /** @param {Make} make @param {(message: Message) => void} send @param {() => void} left */
  constructor(make, send, left) {
    this.make = make;
    this.send = send;
    this.left = left;
    this.opened = null;
    this.sent = null;
    this.node = make("div", "form");
    this.node.setAttribute("role", "group");
    this.node.hidden = true;
    this.node.addEventListener("keydown", (event) => {
      if (event.key === "Escape") consume(event, () => this.leave());
      else if (event.key === "Enter") consume(event, () => this.submit());
    });
  }
  /** @param {Form} form */
  open(form) {
    this.opened = form;
    const { label, fields } = form;
    const yes = actionButton(this.make, form.button, () => this.submit());
    const cancel = actionButton(this.make, "Cancel", () => this.leave());
    this.node.setAttribute("aria-label", label);
    this.node.replaceChildren(this.make("span", "on", label), ...fields, yes, cancel);
    this.node.hidden = false;
    const [first] = fields;
    (first ?? yes).focus();
    if (first && "select" in first) first.select();
  }
  close() {
    this.opened = null;
    this.node.hidden = true;
    this.node.replaceChildren();
  }
  leave() {
    this.close();
    this.left();
  }
  submit() {
    const form = this.opened;
    const message = form?.message() ?? null;
    if (message === null) return;
    this.leave();
    this.sent = form;
    this.send(message);
  }
};
function deriveForm(make, slot) {
  const label = `New slot from ${slot}, named`;
  return nameForm(make, "derive", slot, "", {
    label,
    button: "Derive",
    field: "Name of the new slot"
  });
}
function renameForm(make, slot) {
  const [label, field] = [`Rename ${slot} to`, `New name of ${slot}`];
  return nameForm(make, "rename", slot, slot ?? "", { label, button: "Rename", field });
}
function nameForm(make, kind, slot, value, words) {
  const field = make("input", "field");
  field.setAttribute("aria-label", words.field);
  field.setAttribute("maxlength", "128");
  field.setAttribute("dir", "auto");
  field.setAttribute("autocomplete", "off");
  field.setAttribute("spellcheck", "false");
  field.value = value;
  const message = () => {
    const name = field.value.trim();
    if (name && name !== slot) return { kind, slot, name };
    field.focus();
    return null;
  };
  return { slot, label: words.label, button: words.button, fields: [field], message };
}
function modeForm(make, slot, state) {
  const mode = make("select", "field");
  mode.setAttribute("aria-label", `What the model sees of ${slot}`);
  mode.append(...MODES.map((name) => optionOf(make, name)));
  mode.value = state?.mode ?? "full";
  const count = make("input", "field");
  count.setAttribute("type", "number");
  count.setAttribute("min", "1");
  count.setAttribute("aria-label", "How many of the newest messages");
  count.value = /\d+/.exec(state?.mode === "focused" ? state.mode_label : "")?.[0] ?? "10";
  const adapt = () => {
    count.hidden = mode.value !== "focused";
  };
  mode.addEventListener("change", adapt);
  adapt();
  const message = () => {
    const made = { kind: "mode", slot, mode: mode.value };
    if (made.mode !== "focused") return made;
    return { ...made, count: Math.max(1, Math.trunc(Number(count.value)) || 10) };
  };
  return { slot, label: `Mode of ${slot}`, button: "Set", fields: [mode, count], message };
}
var deleteForm = (slot) => ({
  slot,
  label: `Delete ${slot}? Its log is kept.`,
  button: "Delete",
  fields: [],
  message: () => ({ kind: "delete", slot })
});

// widgets/src/views/styles.js
var TEXT = `font: var(--jp-ui-font-size1, 13px)/1.4 var(--jp-ui-font-family, system-ui, sans-serif);
  color: var(--jp-ui-font-color1, var(--vscode-foreground, CanvasText));`;
var MUTED = "color: var(--jp-ui-font-color2, inherit);";
var ACCENT = "var(--jp-brand-color1, var(--vscode-focusBorder, LinkText))";
var FOCUS_RING = `outline: 2px solid ${ACCENT};`;
var EDGE = "1px solid var(--jp-border-color1, rgba(128, 128, 128, .5))";
var CONTROL_EDGE = "1px solid var(--jp-border-color0, rgba(128, 128, 128, .7))";
var HOVERED = "background: var(--jp-layout-color2, rgba(128, 128, 128, .15));";

// widgets/src/views/slot_style.js
var STYLE = `
.am-tabs { ${TEXT} margin: 4px 0; max-width: 760px; }
.am-tabs [hidden] { display: none !important; }
.am-tabs .am-tabs__head { ${MUTED} margin: 0 0 6px; overflow-wrap: anywhere; }
.am-tabs .am-tabs__list { max-height: 22em; overflow: auto; padding: 3px; border-radius: 4px;
  border: ${EDGE}; }
.am-tabs .am-tabs__tab { display: flex; flex-wrap: wrap; align-items: baseline; gap: 0 12px; cursor: pointer;
  padding: 4px 8px; border-radius: 3px; border-inline-start: 3px solid transparent; }
.am-tabs .am-tabs__tab:hover { ${HOVERED} }
.am-tabs :focus-visible { ${FOCUS_RING} outline-offset: -1px; }
.am-tabs .am-tabs__tab[aria-selected="true"] { ${HOVERED}
  border-inline-start-color: ${ACCENT}; }
.am-tabs .am-tabs__tab[aria-selected="true"] .am-tabs__name { font-weight: 600; }
.am-tabs .am-tabs__name { flex: 1 1 12em; min-width: 0; overflow-wrap: anywhere; }
.am-tabs .am-tabs__branch { white-space: pre; ${MUTED} font-weight: 400; }
.am-tabs .am-tabs__mode { margin-inline-start: 6px; padding: 0 5px; border-radius: 3px; font-size: .85em; font-weight: 400;
  white-space: nowrap; border: ${EDGE}; }
.am-tabs .am-tabs__facts { font-variant-numeric: tabular-nums; white-space: nowrap; }
.am-tabs .am-tabs__facts, .am-tabs .am-tabs__from { font-size: .9em; ${MUTED} }
.am-tabs .am-tabs__from { flex-basis: 100%; padding-inline-start: calc(1.2em * var(--am-depth, 0)); overflow-wrap: anywhere; }
.am-tabs .am-tabs__tab:is(:hover, [aria-selected="true"]) :is(.am-tabs__facts, .am-tabs__from, .am-tabs__branch) { color: inherit; }
.am-tabs .am-tabs__bar, .am-tabs .am-tabs__form { display: flex; flex-wrap: wrap; align-items: center; gap: 6px; margin: 6px 0 0; }
.am-tabs .am-tabs__on { min-width: 0; max-width: 100%; overflow-wrap: anywhere; }
.am-tabs .am-tabs__button, .am-tabs .am-tabs__field { font: inherit; color: inherit; padding: 2px 9px; border-radius: 3px;
  border: ${CONTROL_EDGE}; background: var(--jp-layout-color1, transparent); }
.am-tabs .am-tabs__field { min-width: 0; max-width: 100%; box-sizing: border-box; }
.am-tabs input[type="number"].am-tabs__field { width: 6em; }
.am-tabs .am-tabs__button { cursor: pointer; }
.am-tabs .am-tabs__button:hover { ${HOVERED} }
.am-tabs .am-tabs__notice { display: inline; margin: 0; margin-inline-end: 8px; overflow-wrap: anywhere; }
.am-tabs .am-tabs__notice--refused { color: var(--jp-error-color1, inherit); }
.am-tabs .am-tabs__said { margin: 6px 0 0; min-height: 1.4em; }
`;

// widgets/src/views/words.js
var grouped = (count) => count.toLocaleString("en-US");
var counted = (count, noun) => `${grouped(count)} ${noun}${count === 1 ? "" : "s"}`;

// widgets/src/views/slot_tree.js
var DEEPEST = 8;
function origin(slot) {
  if (slot.parent === null) return "";
  return `from ${slot.parent}` + (slot.forked_at_turn ? ` at turn ${slot.forked_at_turn}` : "");
}
function spokenName(slot) {
  const facts = [
    slot.id,
    slot.mode_label,
    counted(slot.turns, "turn"),
    counted(slot.tokens, "token")
  ];
  if (origin(slot)) facts.push(origin(slot));
  if (slot.model !== null) facts.push(slot.model);
  if (slot.is_running) facts.push("running");
  return facts.join(", ");
}
var SlotTree = class {
  /** @param {Make} make @param {Actions} actions */
  constructor(make, actions) {
    this.make = make;
    this.actions = actions;
    this.node = make("div", "list");
    this.node.setAttribute("role", "tree");
    this.node.addEventListener("keydown", (event) => this.onKeydown(event));
    this.slots = [];
    this.rows = /* @__PURE__ */ new Map();
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
    const active = isThere ? this.active : this.current ?? this.slots[0]?.id ?? null;
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
    const node = id === null ? void 0 : this.rows.get(id)?.node;
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
    if (slot === void 0 || event.ctrlKey || event.metaKey || event.altKey) return;
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
};

// widgets/src/views/slot_tabs.js
var DRAWN2 = /* @__PURE__ */ new WeakMap();
var SlotTabs = class {
  /** @param {HTMLElement} root */
  constructor(root) {
    const make = makerOf(root.ownerDocument, "am-tabs");
    this.make = make;
    this.send = () => {
    };
    this.said = 0;
    this.awaited = null;
    this.undoes = null;
    this.head = make("p", "head");
    this.on = make("span", "on");
    this.bar = this.newBar();
    this.form = new FormRow(
      make,
      (message) => this.sendForm(message),
      () => this.focusActive()
    );
    this.tree = new SlotTree(make, {
      activated: (slot) => this.nameActive(slot),
      switchTo: (slot) => this.send({ kind: "switch", slot }),
      rename: () => this.openRename(),
      remove: () => this.openDelete(),
      canChange: () => !this.bar.hidden
    });
    this.notice = make("p", "notice");
    this.notice.setAttribute("role", "status");
    this.undo = actionButton(make, "Undo", () => this.sendUndo());
    this.undo.hidden = true;
    const said = make("div", "said");
    said.append(this.notice, this.undo);
    const box = make("div", "box");
    box.className = "am-tabs";
    keepKeysIn(box);
    box.append(this.head, this.tree.node, this.bar, this.form.node, said);
    root.style.setProperty("container-type", "inline-size");
    mount(root, STYLE, box);
  }
  newBar() {
    const { make } = this;
    const bar = make("div", "bar");
    bar.setAttribute("role", "group");
    bar.append(
      this.on,
      actionButton(make, "Derive here…", () => this.form.open(deriveForm(make, this.tree.active))),
      actionButton(make, "Rename…", () => this.openRename()),
      actionButton(make, "Mode…", () => this.openMode()),
      actionButton(make, "Delete…", () => this.openDelete())
    );
    return bar;
  }
  /** @param {SessionState} state @param {Notice} notice @param {(message: object) => void} send */
  update(state, notice, send) {
    this.send = send;
    const hadFocus = this.tree.followFocus();
    const before = this.tree.current;
    this.tree.slots = state.slots ?? [];
    const readonly = state.is_readonly ? " · read-only" : "";
    this.head.textContent = `${state.title} · ${state.model}${readonly}`;
    this.tree.node.setAttribute("aria-label", `Slots of ${state.title}`);
    this.bar.hidden = state.is_readonly || this.tree.slots.length === 0;
    if (state.is_readonly) this.form.close();
    this.chooseActive(before, hadFocus);
    if (this.form.opened !== null && !this.has(this.form.opened.slot)) this.form.close();
    this.tree.draw(hadFocus);
    this.tell(notice);
  }
  /** @param {string | null} id */
  has(id) {
    return this.tree.slots.some((slot) => slot.id === id);
  }
  /**
   * Let the active slot be the one that was awaited, or the current one where that changed and nobody
   * is at work here, or where the active one is gone: so a delete leaves no other slot in danger.
   * @param {string | undefined} before what was the current one @param {boolean} hadFocus
   */
  chooseActive(before, hadFocus) {
    const { tree } = this;
    const isIdle = !hadFocus && this.form.opened === null;
    const isAwaited = this.has(this.awaited);
    if (isAwaited) tree.active = this.awaited;
    else if (tree.current !== before && isIdle || !this.has(tree.active)) {
      tree.active = tree.current ?? null;
    }
    if (isAwaited) this.awaited = null;
  }
  /** Say what the buttons are about. @param {string | null} slot */
  nameActive(slot) {
    this.on.textContent = "";
    this.on.append(this.make("bdi", "target", slot ?? ""), this.make("span", "colon", ":"));
    this.bar.setAttribute("aria-label", `Actions on ${slot}`);
  }
  focusActive() {
    this.tree.activate(this.tree.active, { focuses: true });
  }
  openRename() {
    this.form.open(renameForm(this.make, this.tree.active));
  }
  openMode() {
    const { active, slots } = this.tree;
    const state = slots.find(({ id }) => id === active);
    this.form.open(modeForm(this.make, active, state));
  }
  openDelete() {
    this.form.open(deleteForm(this.tree.active));
  }
  /** @param {Message} message */
  sendForm(message) {
    if (message.name !== void 0) this.awaited = message.name;
    this.send(message);
  }
  sendUndo() {
    if (this.undoes) this.send({ kind: "undo", uid: this.undoes });
    this.focusActive();
  }
  /** Give a form that was refused back as it was sent, where nobody went elsewhere meanwhile. */
  openAgain() {
    const { sent, opened } = this.form;
    if (sent === null || opened !== null || !this.has(sent.slot)) return;
    this.tree.activate(sent.slot);
    this.form.open(sent);
  }
  /** Say what was done or refused, once. @param {Notice} notice */
  tell(notice) {
    if ((notice.number ?? 0) === this.said) return;
    this.said = notice.number ?? 0;
    if (notice.is_refused) {
      this.awaited = null;
      this.openAgain();
    }
    this.form.sent = null;
    this.notice.className = `am-tabs__notice${notice.is_refused ? " am-tabs__notice--refused" : ""}`;
    this.notice.textContent = notice.text ?? "";
    this.undoes = notice.undo ?? null;
    this.undo.hidden = !this.undoes;
  }
};
function slotTabs(root, state, { send = () => {
}, notice = {} } = {}) {
  const tabs = DRAWN2.get(root) ?? new SlotTabs(root);
  DRAWN2.set(root, tabs);
  tabs.update(state, notice, send);
}

// widgets/src/entries/slot_tabs.js
var slot_tabs_default = live(slotTabs);
export {
  slot_tabs_default as default
};
