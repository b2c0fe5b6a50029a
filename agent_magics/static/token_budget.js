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

// widgets/src/views/words.js
var grouped = (count) => count.toLocaleString("en-US");
var percentOf = (part, whole, digits = 2) => `${Math.min(100, 100 * part / Math.max(1, whole)).toFixed(digits)}%`;

// widgets/src/views/budget_bar.js
var LABELS = {
  dynamic: "what is new",
  tool_results: "tool results",
  user_input: "your message",
  media: "images",
  answer: "answer so far"
};
var OTHER_COLOR = "#7d7d7d";
var COLORS = {
  system: "#5b7fd4",
  tools: "#8a6fc9",
  skills: "#b55fb0",
  memories: "#c75b7a",
  dynamic: "#3a8bab",
  summary: "#b8762a",
  history: "#2f8f83",
  tool_results: "#5d8a3a",
  user_input: OTHER_COLOR,
  media: "#a8794f",
  answer: "#c2566b"
};
var partLabel = (name) => LABELS[name] ?? name;
function spokenBudget(budget) {
  const parts = budget.parts.map((part) => `${partLabel(part.name)} ${grouped(part.tokens)}`);
  return [
    `${grouped(budget.used)} of ${grouped(budget.window)} tokens used`,
    `compacts past ${grouped(budget.threshold)}`,
    ...parts,
    ...budget.frees ? [`a compaction would free about ${grouped(budget.frees)}`] : []
  ].join(", ");
}
var BudgetBar = class {
  /** @param {Make} make @param {Budget} budget */
  constructor(make, budget) {
    this.make = make;
    this.budget = budget;
    this.bar = make("div", "bar");
    this.bar.setAttribute("role", "meter");
    this.bar.setAttribute("aria-label", `Context of ${budget.slot}`);
    this.bar.setAttribute("aria-valuemin", "0");
    this.bar.setAttribute("aria-valuemax", String(budget.window));
    this.bar.setAttribute("aria-valuenow", String(Math.min(budget.used, budget.window)));
    this.bar.setAttribute("aria-valuetext", spokenBudget(budget));
    this.legend = make("ul", "legend");
    for (const part of budget.parts) this.addPart(part);
    this.addUnused();
    this.addThreshold();
    if (budget.frees) this.addFreed(budget.frees);
  }
  /** @param {number} tokens */
  share(tokens) {
    return percentOf(tokens, this.budget.window);
  }
  /** @param {string} name of its class @param {string} title @param {number} tokens */
  addPiece(name, title, tokens) {
    const piece = this.make("span", name);
    piece.style.setProperty("width", this.share(tokens));
    piece.setAttribute("title", title);
    this.bar.append(piece);
    return piece;
  }
  /** @param {HTMLElement} swatch @param {string} label @param {number} tokens */
  addLine(swatch, label, tokens) {
    const line = this.make("li", "item");
    const amount = this.make("span", "tokens", grouped(tokens));
    line.append(swatch, this.make("span", "label", label), amount);
    this.legend.append(line);
  }
  /** @param {string} name */
  swatchOf(name) {
    const swatch = this.make("span", "swatch");
    swatch.className += ` am-budget__swatch--${name}`;
    return swatch;
  }
  /** @param {{name: string, tokens: number}} part */
  addPart({ name, tokens }) {
    const label = partLabel(name);
    const piece = this.addPiece("part", `${label}: ${grouped(tokens)} tokens`, tokens);
    const swatch = this.make("span", "swatch");
    for (const node of [piece, swatch]) {
      node.style.setProperty("background-color", COLORS[name] ?? OTHER_COLOR);
      if (name === "answer") node.className += ` ${node.className}--answer`;
    }
    this.addLine(swatch, label, tokens);
  }
  /** What is free ends at the threshold; behind it stands what is kept for the answer. */
  addUnused() {
    const { window, threshold, used, free } = this.budget;
    const kept = Math.max(0, window - Math.max(threshold, used));
    const reserve = used > threshold ? "left of the reserve" : "reserve";
    this.addRest("free", "free before the threshold", free);
    this.addRest("reserve", reserve, kept);
  }
  /** @param {string} name @param {string} label @param {number} tokens */
  addRest(name, label, tokens) {
    this.addPiece(name, `${label}: ${grouped(tokens)} tokens`, tokens);
    this.addLine(this.swatchOf(name), label, tokens);
  }
  addThreshold() {
    const { threshold } = this.budget;
    const mark = this.make("span", "mark");
    mark.style.setProperty("left", this.share(threshold));
    mark.setAttribute("title", `compacts past ${grouped(threshold)} tokens`);
    this.bar.append(mark);
  }
  /**
   * Mark what a compaction would free, up to what is used: there the part lies that is summarised.
   * @param {number} tokens
   */
  addFreed(tokens) {
    const { used } = this.budget;
    const title = `a compaction now would free about ${grouped(tokens)} tokens`;
    const strip = this.addPiece("frees", title, Math.min(tokens, used));
    strip.style.setProperty("left", this.share(Math.max(0, used - tokens)));
    this.addLine(this.swatchOf("frees"), "a compaction would free about", tokens);
  }
};

// widgets/src/views/styles.js
var TEXT = `font: var(--jp-ui-font-size1, 13px)/1.4 var(--jp-ui-font-family, system-ui, sans-serif);
  color: var(--jp-ui-font-color1, var(--vscode-foreground, CanvasText));`;
var MUTED = "color: var(--jp-ui-font-color2, inherit);";
var ACCENT = "var(--jp-brand-color1, var(--vscode-focusBorder, LinkText))";
var FOCUS_RING = `outline: 2px solid ${ACCENT};`;

// widgets/src/views/budget_style.js
var STYLE = `
.am-budget { ${TEXT} margin: 4px 0; max-width: 760px; }
.am-budget p.am-budget__head, .am-budget p.am-budget__notes { margin: 0; overflow-wrap: anywhere; }
.am-budget .am-budget__notes { ${MUTED} font-size: .9em; }
.am-budget .am-budget__bar { position: relative; display: flex; height: 16px; margin: 6px 0 4px; border-radius: 3px;
  background: var(--jp-layout-color2, rgba(128, 128, 128, .2));
  box-shadow: inset 0 0 0 1px var(--jp-border-color1, rgba(128, 128, 128, .5)); }
.am-budget .am-budget__part { min-width: 2px; }
.am-budget .am-budget__part:first-child { border-radius: 3px 0 0 3px; }
.am-budget .am-budget__frees { position: absolute; bottom: -5px; height: 3px; border-radius: 2px;
  background: var(--jp-success-color0, #2f8f4f); }
.am-budget .am-budget__swatch--answer, .am-budget .am-budget__part--answer {
  background-image: repeating-linear-gradient(90deg, rgba(255, 255, 255, .35) 0 3px, transparent 3px 6px); }
.am-budget .am-budget__figures { display: flex; flex-wrap: wrap; gap: 2px 28px; margin: 2px 0 0; }
.am-budget .am-budget__figure { min-width: 0; overflow-wrap: anywhere; }
.am-budget .am-budget__value { font-weight: 600; font-variant-numeric: tabular-nums; }
.am-budget .am-budget__free { margin-left: auto; }
.am-budget .am-budget__reserve { border-radius: 0 3px 3px 0; }
.am-budget .am-budget__reserve, .am-budget .am-budget__swatch--reserve {
  background: repeating-linear-gradient(135deg, var(--jp-border-color1, rgba(128, 128, 128, .5)) 0 2px, transparent 2px 6px); }
.am-budget .am-budget__mark { position: absolute; top: -3px; bottom: -3px; width: 2px; margin-left: -1px;
  background: var(--jp-ui-font-color1, currentColor); }
.am-budget ul.am-budget__legend { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 252px), 1fr));
  gap: 2px 16px; list-style: none; margin: 6px 0; padding: 0; }
.am-budget .am-budget__item { display: flex; align-items: baseline; gap: 6px; }
.am-budget .am-budget__swatch { flex: none; width: 10px; height: 10px; border-radius: 2px; }
.am-budget .am-budget__swatch--frees { height: 3px; align-self: center; background: var(--jp-success-color0, #2f8f4f); }
.am-budget .am-budget__swatch--free { box-shadow: inset 0 0 0 1px var(--jp-border-color1, rgba(128, 128, 128, .5));
  background: var(--jp-layout-color2, rgba(128, 128, 128, .2)); }
.am-budget .am-budget__last { display: grid; grid-template-columns: max-content minmax(0, 1fr) max-content; align-items: center;
  gap: 3px 8px; margin: 6px 0; font-size: .9em; ${MUTED} }
.am-budget .am-budget__title { grid-column: 1 / -1; }
.am-budget .am-budget__track { height: 8px; border-radius: 2px; background: var(--jp-layout-color2, rgba(128, 128, 128, .2)); }
.am-budget .am-budget__fill { display: block; height: 100%; min-width: 2px; border-radius: 2px; background: #7d7d7d; }
.am-budget .am-budget__fill--after { background: #b8762a; }
.am-budget .am-budget__amount { text-align: right; font-variant-numeric: tabular-nums; }
.am-budget .am-budget__tokens { margin-left: auto; font-variant-numeric: tabular-nums; }
`;

// widgets/src/views/token_budget.js
function tokenBudget(root, { budget }) {
  const make = makerOf(root.ownerDocument, "am-budget");
  const box = make("div", "box");
  box.className = "am-budget";
  mount(root, STYLE, box);
  if (!budget) {
    box.append(make("p", "head", "Nothing has been asked here yet."));
    return;
  }
  const { bar, legend } = new BudgetBar(make, budget);
  const head = make("p", "head", `${budget.slot} · ${budget.model}`);
  box.append(head, figuresOf(make, budget), bar, legend);
  if (budget.checkpoint) box.append(lastCompaction(make, budget.checkpoint, budget.window));
  const [source, ...others] = budget.notes.filter((note) => note !== budget.spent);
  const threshold = `compacts past ${grouped(budget.threshold)} · ${source}`;
  box.append(...[threshold, ...others].map((note) => make("p", "notes", note)));
}
function figuresOf(make, { used, window, spent }) {
  const percent = Math.round(100 * used / Math.max(1, window));
  const rest = ` · ${grouped(used)} of ${grouped(window)} tokens`;
  const soFar = spent ? spent.replace(/^spent in this slot: /, "") : "nothing";
  const figures = make("div", "figures");
  figures.append(
    figureOf(make, "context now ", `${percent} %`, rest),
    figureOf(make, "spent so far ", soFar, "")
  );
  return figures;
}
function figureOf(make, name, value, rest) {
  const figure = make("span", "figure", name);
  figure.append(make("span", "value", value), make("span", "rest", rest));
  return figure;
}
var spokenCompaction = (last) => `last compaction: ${grouped(last.tokens_before)} → ${grouped(last.tokens_after)} tokens` + (last.is_degraded ? ", by leaving older turns out" : "");
function lastCompaction(make, last, window) {
  const box = make("div", "last");
  box.setAttribute("role", "img");
  box.setAttribute("aria-label", spokenCompaction(last));
  const how = last.is_degraded ? ", by leaving older turns out" : "";
  box.append(
    make("span", "title", `last compaction${how}`),
    ...barOf(make, "before", last.tokens_before, window),
    ...barOf(make, "after", last.tokens_after, window)
  );
  return box;
}
function barOf(make, name, tokens, window) {
  const track = make("span", "track");
  const fill = make("span", "fill");
  fill.className += ` am-budget__fill--${name}`;
  fill.style.setProperty("width", percentOf(tokens, window));
  track.append(fill);
  return [make("span", "when", name), track, make("span", "amount", grouped(tokens))];
}

// widgets/src/entries/token_budget.js
var token_budget_default = live(tokenBudget);
export {
  token_budget_default as default
};
