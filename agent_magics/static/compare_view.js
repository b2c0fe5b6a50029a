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

// widgets/src/views/compare_choice.js
var ChoiceField = class {
  /** @param {Make} make @param {string} name @param {(value: string) => void} choose */
  constructor(make, name, choose) {
    this.make = make;
    this.node = make("label", "label");
    this.field = make("select", "field");
    this.drawn = "";
    this.sent = [];
    this.shown = "";
    this.field.addEventListener("change", () => {
      this.sent.push(this.field.value);
      choose(this.field.value);
    });
    this.node.append(make("span", "name", name), this.field);
  }
  /**
   * Show what can be chosen; one choice alone is none. True: what a person chose is shown now.
   * @param {Choice[]} choices @param {string} chosen
   */
  offer(choices, chosen) {
    this.node.hidden = choices.length < 2;
    const drawn = JSON.stringify(choices);
    if (this.drawn !== drawn) {
      this.drawn = drawn;
      this.field.replaceChildren(...choices.map(({ id, label }) => optionOf(this.make, id, label)));
    }
    const isAnswered = this.takeAnswer(choices, chosen);
    const value = this.sent.at(-1) ?? chosen;
    if (this.field.value !== value) this.field.value = value;
    return isAnswered;
  }
  /**
   * Take from what was sent what a state answers. A state that says what the last one did was on its
   * way before the choice came; one that says something else, or no longer offers the choice,
   * answers it.
   * @param {Choice[]} choices @param {string} chosen
   */
  takeAnswer(choices, chosen) {
    const at = this.sent.lastIndexOf(chosen);
    const isOver = at < 0 && chosen !== this.shown;
    this.shown = chosen;
    const known = new Set(choices.map(({ id }) => id));
    this.sent = isOver ? [] : this.sent.slice(at + 1).filter((value) => known.has(value));
    return at >= 0 && this.sent.length === 0;
  }
};

// widgets/src/views/compare_words.js
var SPOKEN_PLACES = 5;
var SPOKEN_CHARACTERS = 60;
var spokenAlike = (alike, base) => alike === 100 ? `the same as ${base}` : `${alike} % in common with ${base}`;
var spokenByLines = (base) => `compared with ${base} by lines and sentences`;
var short = (text) => [...text].length > SPOKEN_CHARACTERS ? `${[...text].slice(0, SPOKEN_CHARACTERS).join("")}…` : text;
function spokenPlaces(pieces) {
  const places = pieces.filter(({ differs }) => differs).map(({ text }) => short(text.replace(/\s+/g, " ")));
  if (places.length === 0) return "";
  const more = places.length - SPOKEN_PLACES;
  const told = [...places.slice(0, SPOKEN_PLACES), ...more > 0 ? [`and ${more} more`] : []];
  return `differs in ${places.length === 1 ? "one place" : `${places.length} places`}: ${told.join("; ")}`;
}
function spokenChoice(state, namesPrompt) {
  const others = state.columns.filter(
    ({ id, status }) => id !== state.base && status !== "not asked"
  );
  const shares = others.map(
    (column) => others.length === 1 ? spokenShare(column) : `${column.id} ${spokenShare(column)}`
  );
  const prompt = state.prompts.find(({ id }) => id === state.chosen)?.label ?? "";
  const asked = namesPrompt ? [prompt] : [];
  return [...asked, `compared with ${state.base}`, ...shares].join(", ");
}
function spokenShare({ alike, by_lines: byLines }) {
  if (byLines) return "by lines and sentences";
  return alike === 100 ? "the same" : `${alike} % in common`;
}

// widgets/src/views/compare_column.js
var AnswerColumn = class {
  /** @param {Make} make @param {string} slot */
  constructor(make, slot) {
    this.make = make;
    this.drawn = null;
    this.base = "";
    this.node = make("section", "column");
    this.node.setAttribute("aria-label", `Answer in ${slot}`);
    const head = make("div", "head");
    this.alike = make("span", "alike");
    this.facts = make("div", "facts");
    head.append(make("span", "slot", slot), this.alike, this.facts);
    this.text = readable(make("div", "text"), `What ${slot} answered`);
    this.places = make("div", "places");
    this.places.hidden = true;
    const id = `am-compare-${Math.random().toString(36).slice(2)}`;
    this.places.setAttribute("id", id);
    this.text.setAttribute("aria-describedby", id);
    this.node.append(head, this.text, this.places);
  }
  /** @param {Column} column @param {string} base @param {boolean} marks */
  draw(column, base, marks) {
    if (this.drawn === column && this.base === base) return;
    [this.drawn, this.base] = [column, base];
    const isBase = column.id === base;
    this.node.className = `am-compare__column${isBase ? " am-compare__column--base" : ""}`;
    const share = column.alike === null ? "" : spokenAlike(column.alike, base);
    this.alike.textContent = column.by_lines ? spokenByLines(base) : share;
    const facts = [column.turn === null ? "" : `turn ${column.turn}`, column.facts];
    if (column.status !== "complete") facts.unshift(column.status);
    this.facts.textContent = facts.filter((fact) => fact !== "").join(" · ");
    const was = this.text.scrollTop;
    this.text.replaceChildren(...column.pieces.map((piece) => this.pieceOf(piece)));
    this.text.hidden = column.status === "not asked";
    this.text.scrollTop = was;
    this.describe(marks);
  }
  /** Tell those who hear the answer where it differs, while that is marked. @param {boolean} marks */
  describe(marks) {
    this.places.textContent = marks && this.drawn !== null ? spokenPlaces(this.drawn.pieces) : "";
  }
  /** @param {Piece} piece */
  pieceOf({ text, differs }) {
    return this.make(differs ? "mark" : "span", differs ? "differs" : "same", text);
  }
};

// widgets/src/views/styles.js
var TEXT = `font: var(--jp-ui-font-size1, 13px)/1.4 var(--jp-ui-font-family, system-ui, sans-serif);
  color: var(--jp-ui-font-color1, var(--vscode-foreground, CanvasText));`;
var MUTED = "color: var(--jp-ui-font-color2, inherit);";
var ACCENT = "var(--jp-brand-color1, var(--vscode-focusBorder, LinkText))";
var FOCUS_RING = `outline: 2px solid ${ACCENT};`;
var EDGE = "1px solid var(--jp-border-color1, rgba(128, 128, 128, .5))";
var CONTROL_EDGE = "1px solid var(--jp-border-color0, rgba(128, 128, 128, .7))";
var SPOKEN_ONLY = "position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap;";

// widgets/src/views/compare_style.js
var STYLE = `
.am-compare { position: relative; ${TEXT} margin: 4px 0; }
.am-compare [hidden] { display: none !important; }
.am-compare p.am-compare__hint { margin: 0; }
.am-compare p.am-compare__note { margin: 6px 0 0; font-size: .9em; ${MUTED} }
.am-compare .am-compare__spoken { ${SPOKEN_ONLY} }
.am-compare .am-compare__prompt { margin: 0 0 6px; max-height: 6.5em; overflow: auto; white-space: pre-wrap;
  overflow-wrap: anywhere; unicode-bidi: plaintext; font-weight: 600; }
.am-compare .am-compare__bar { display: flex; flex-wrap: wrap; align-items: center; gap: 4px 16px; margin: 0 0 8px; }
.am-compare label.am-compare__label { display: inline-flex; align-items: center; gap: 6px; min-width: 0; max-width: 100%; margin: 0; }
.am-compare .am-compare__name { flex: none; ${MUTED} }
.am-compare select.am-compare__field { font: inherit; color: inherit; min-width: 0; max-width: 28em; padding: 2px 6px; border-radius: 3px;
  border: ${CONTROL_EDGE}; background: var(--jp-layout-color1, Canvas); }
.am-compare input.am-compare__check { margin: 0; }
.am-compare .am-compare__columns { display: grid; gap: 10px; grid-template-columns: repeat(auto-fit, minmax(min(100%, 18em), 1fr)); }
.am-compare .am-compare__column { min-width: 0; border-radius: 4px; border: ${EDGE}; }
.am-compare .am-compare__column--base { border-color: var(--jp-brand-color1, currentColor); }
.am-compare .am-compare__head { padding: 5px 10px; border-bottom: 1px solid var(--jp-border-color2, rgba(128, 128, 128, .35)); overflow-wrap: anywhere; }
.am-compare .am-compare__slot { font-weight: 600; unicode-bidi: isolate; }
.am-compare .am-compare__alike { margin-inline-start: 8px; }
.am-compare .am-compare__facts { font-size: .9em; ${MUTED} font-variant-numeric: tabular-nums; }
.am-compare .am-compare__text { padding: 8px 10px; max-height: 30em; overflow: auto; white-space: pre-wrap; overflow-wrap: anywhere;
  unicode-bidi: plaintext; font-family: var(--jp-content-font-family, inherit); font-size: var(--jp-content-font-size1, inherit); }
.am-compare .am-compare__text:empty::before { content: "nothing was said"; ${MUTED} font-style: italic; }
.am-compare mark.am-compare__differs { color: inherit; border-radius: 2px; text-decoration: underline; text-decoration-thickness: 2px;
  text-underline-offset: 3px; text-decoration-color: var(--jp-warn-color1, #b8762a); background: rgba(184, 118, 42, .18); }
.am-compare--plain mark.am-compare__differs { text-decoration: none; background: none; }
.am-compare :is(select, input, .am-compare__text, .am-compare__prompt):focus-visible {
  ${FOCUS_RING} outline-offset: 1px; }
`;

// widgets/src/views/compare_view.js
var DRAWN2 = /* @__PURE__ */ new WeakMap();
var CompareView = class {
  /** @param {HTMLElement} root */
  constructor(root) {
    const make = makerOf(root.ownerDocument, "am-compare");
    this.make = make;
    this.send = () => {
    };
    this.columns = /* @__PURE__ */ new Map();
    this.marks = true;
    this.hint = make("p", "hint");
    this.prompt = readable(make("div", "prompt"), "What was asked");
    this.prompts = new ChoiceField(make, "prompt", (prompt) => {
      this.send({ kind: "choose", prompt });
    });
    this.bases = new ChoiceField(make, "compared with", (base) => {
      this.send({ kind: "choose", base });
    });
    this.bar = make("div", "bar");
    this.bar.append(this.prompts.node, this.bases.node, this.newMarking());
    this.grid = make("div", "columns");
    this.note = make("p", "note");
    this.spoken = make("div", "spoken");
    this.spoken.setAttribute("role", "status");
    this.box = make("div", "box");
    this.box.className = "am-compare";
    keepKeysIn(this.box);
    this.box.append(this.hint, this.prompt, this.bar, this.grid, this.note, this.spoken);
    mount(root, STYLE, this.box);
  }
  newMarking() {
    const label = this.make("label", "label");
    const check = this.make("input", "check");
    check.setAttribute("type", "checkbox");
    check.checked = true;
    check.addEventListener("change", () => this.mark(check.checked));
    label.append(check, this.make("span", "name", "mark what differs"));
    return label;
  }
  /** @param {boolean} marks */
  mark(marks) {
    this.marks = marks;
    this.box.className = marks ? "am-compare" : "am-compare am-compare--plain";
    for (const column of this.columns.values()) column.describe(marks);
  }
  /** @param {Comparison} state @param {(message: object) => void} send */
  update(state, send) {
    this.send = send;
    const isEmpty = state.hint !== "";
    this.hint.textContent = state.hint;
    this.hint.hidden = !isEmpty;
    this.note.textContent = state.note;
    this.note.hidden = state.note === "";
    for (const node of [this.prompt, this.bar, this.grid]) node.hidden = isEmpty;
    if (isEmpty) return;
    if (this.prompt.textContent !== state.prompt) this.prompt.textContent = state.prompt;
    this.offer(state);
    this.drawColumns(state);
  }
  /** @param {Comparison} state */
  offer(state) {
    const isPrompt = this.prompts.offer(state.prompts, state.chosen);
    const answered = state.columns.filter(({ status }) => status !== "not asked");
    const bases = answered.map(({ id }) => ({ id, label: id }));
    const isBase = this.bases.offer(bases, state.base);
    if (isPrompt || isBase) this.spoken.textContent = spokenChoice(state, isPrompt);
  }
  /** @param {Comparison} state */
  drawColumns({ columns, base }) {
    const nodes = columns.map((column) => this.drawColumn(column, base));
    const known = new Set(columns.map(({ id }) => id));
    for (const id of [...this.columns.keys()]) if (!known.has(id)) this.columns.delete(id);
    const there = [...this.grid.children];
    const isSame = nodes.length === there.length && nodes.every((node, at) => node === there[at]);
    if (!isSame) this.grid.replaceChildren(...nodes);
  }
  /** @param {Column} column @param {string} base */
  drawColumn(column, base) {
    const drawn = this.columns.get(column.id) ?? new AnswerColumn(this.make, column.id);
    this.columns.set(column.id, drawn);
    drawn.draw(column, base, this.marks);
    return drawn.node;
  }
};
function compareView(root, state, { send = () => {
} } = {}) {
  const view = DRAWN2.get(root) ?? new CompareView(root);
  DRAWN2.set(root, view);
  view.update(state, send);
}

// widgets/src/entries/compare_view.js
var compare_view_default = live(compareView);
export {
  compare_view_default as default
};
