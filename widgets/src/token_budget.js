// Token budget: what fills the next request, by part, against the model's window.
// Draws the session state (agent_magics/notebook/views/session_state.py); text is only ever set as text.

/**
 * @typedef {{slot: string, model: string, window: number, threshold: number, used: number,
 *   free: number, parts: {name: string, tokens: number}[], notes: string[], spent: string,
 *   frees: number | null,
 *   checkpoint: {tokens_before: number, tokens_after: number, is_degraded: boolean} | null}} Budget
 */

const LABELS = {
  dynamic: "what is new",
  tool_results: "tool results",
  user_input: "your message",
  media: "images",
  answer: "answer so far",
};
// Mid-tones that keep 3:1 against a white and against a near-black page; names stand beside them.
const COLORS = {
  system: "#5b7fd4",
  tools: "#8a6fc9",
  skills: "#b55fb0",
  memories: "#c75b7a",
  dynamic: "#3a8bab",
  summary: "#b8762a",
  history: "#2f8f83",
  tool_results: "#5d8a3a",
  user_input: "#7d7d7d",
  media: "#a8794f",
  answer: "#c2566b",
};

// Each rule outweighs those of JupyterLab for what stands in an HTML output.
const STYLE = `
.am-budget { font: var(--jp-ui-font-size1, 13px)/1.4 var(--jp-ui-font-family, system-ui, sans-serif);
  color: var(--jp-ui-font-color1, var(--vscode-foreground, CanvasText)); margin: 4px 0; max-width: 760px; }
.am-budget p.am-budget__head, .am-budget p.am-budget__notes { margin: 0; overflow-wrap: anywhere; }
.am-budget .am-budget__notes { color: var(--jp-ui-font-color2, inherit); font-size: .9em; }
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
  gap: 3px 8px; margin: 6px 0; font-size: .9em; color: var(--jp-ui-font-color2, inherit); }
.am-budget .am-budget__title { grid-column: 1 / -1; }
.am-budget .am-budget__track { height: 8px; border-radius: 2px; background: var(--jp-layout-color2, rgba(128, 128, 128, .2)); }
.am-budget .am-budget__fill { display: block; height: 100%; min-width: 2px; border-radius: 2px; background: #7d7d7d; }
.am-budget .am-budget__fill--after { background: #b8762a; }
.am-budget .am-budget__amount { text-align: right; font-variant-numeric: tabular-nums; }
.am-budget .am-budget__tokens { margin-left: auto; font-variant-numeric: tabular-nums; }
`;

/** @param {number} count */
const grouped = (count) => count.toLocaleString("en-US");

/** @param {string} name */
export const partLabel = (name) => LABELS[name] ?? name;

/** What a screen reader says of the bar. @param {Budget} budget */
export function spokenBudget(budget) {
  const parts = budget.parts.map((part) => `${partLabel(part.name)} ${grouped(part.tokens)}`);
  return [
    `${grouped(budget.used)} of ${grouped(budget.window)} tokens used`,
    `compacts past ${grouped(budget.threshold)}`,
    ...parts,
    ...(budget.frees ? [`a compaction would free about ${grouped(budget.frees)}`] : []),
  ].join(", ");
}

/** Say what the last compaction did. @param {NonNullable<Budget["checkpoint"]>} last */
export const spokenCompaction = (last) =>
  `last compaction: ${grouped(last.tokens_before)} → ${grouped(last.tokens_after)} tokens` +
  (last.is_degraded ? ", by leaving older turns out" : "");

/**
 * Draw what the last compaction did as two bars on the scale of the window.
 * @param {(tag: string, name: string, text?: string) => HTMLElement} make
 * @param {NonNullable<Budget["checkpoint"]>} last @param {(tokens: number) => string} share
 */
function lastCompaction(make, last, share) {
  const box = make("div", "last");
  box.setAttribute("role", "img");
  box.setAttribute("aria-label", spokenCompaction(last));
  box.append(make("span", "title", last.is_degraded ? "last compaction, by leaving older turns out" : "last compaction"));
  for (const [name, tokens] of [["before", last.tokens_before], ["after", last.tokens_after]]) {
    const track = make("span", "track");
    const fill = make("span", "fill");
    fill.className += ` am-budget__fill--${name}`;
    fill.style.setProperty("width", share(tokens));
    track.append(fill);
    box.append(make("span", "when", name), track, make("span", "amount", grouped(tokens)));
  }
  return box;
}

/**
 * Draw the budget into `root`, replacing what it drew there before.
 * @param {HTMLElement} root @param {{budget: Budget | null}} state
 */
export function tokenBudget(root, state) {
  const document = root.ownerDocument;
  /** @param {string} tag @param {string} name @param {string} [text] */
  const make = (tag, name, text = "") => {
    const node = document.createElement(tag);
    node.className = `am-budget__${name}`;
    node.textContent = text;
    return node;
  };
  const style = document.createElement("style");
  style.textContent = STYLE;
  const box = make("div", "box");
  box.className = "am-budget";
  root.replaceChildren(style, box);

  const budget = state.budget;
  if (!budget) {
    box.append(make("p", "head", "Nothing has been asked here yet."));
    return;
  }
  const share = (tokens) => `${Math.min(100, (100 * tokens) / Math.max(1, budget.window)).toFixed(2)}%`;

  const bar = make("div", "bar");
  bar.setAttribute("role", "meter");
  bar.setAttribute("aria-label", `Context of ${budget.slot}`);
  bar.setAttribute("aria-valuemin", "0");
  bar.setAttribute("aria-valuemax", String(budget.window));
  bar.setAttribute("aria-valuenow", String(Math.min(budget.used, budget.window)));
  bar.setAttribute("aria-valuetext", spokenBudget(budget));
  const legend = make("ul", "legend");
  /** @param {HTMLElement} swatch @param {string} label @param {number} tokens */
  const item = (swatch, label, tokens) => {
    const line = make("li", "item");
    line.append(swatch, make("span", "label", label), make("span", "tokens", grouped(tokens)));
    legend.append(line);
  };
  for (const part of budget.parts) {
    const color = COLORS[part.name] ?? COLORS.user_input;
    const piece = make("span", "part");
    piece.style.setProperty("width", share(part.tokens));
    piece.style.setProperty("background-color", color);
    piece.setAttribute("title", `${partLabel(part.name)}: ${grouped(part.tokens)} tokens`);
    bar.append(piece);
    const swatch = make("span", "swatch");
    swatch.style.setProperty("background-color", color);
    for (const node of part.name === "answer" ? [piece, swatch] : []) {
      node.className += ` ${node.className}--answer`;
    }
    item(swatch, partLabel(part.name), part.tokens);
  }
  // What is free ends at the threshold; behind it stands what is kept for the answer.
  const kept = Math.max(0, budget.window - Math.max(budget.threshold, budget.used));
  const isOver = budget.used > budget.threshold;
  for (const [name, label, tokens] of [
    ["free", "free before the threshold", budget.free],
    ["reserve", isOver ? "left of the reserve" : "reserve", kept],
  ]) {
    const piece = make("span", name);
    piece.style.setProperty("width", share(tokens));
    piece.setAttribute("title", `${label}: ${grouped(tokens)} tokens`);
    bar.append(piece);
    const swatch = make("span", "swatch");
    swatch.className += ` am-budget__swatch--${name}`;
    item(swatch, label, tokens);
  }
  const mark = make("span", "mark");
  mark.style.setProperty("left", share(budget.threshold));
  mark.setAttribute("title", `compacts past ${grouped(budget.threshold)} tokens`);
  bar.append(mark);

  if (budget.frees) {
    // What a compaction would free lies under the part that is summarised, up to what is used.
    const strip = make("span", "frees");
    strip.style.setProperty("left", share(Math.max(0, budget.used - budget.frees)));
    strip.style.setProperty("width", share(Math.min(budget.frees, budget.used)));
    strip.setAttribute("title", `a compaction now would free about ${grouped(budget.frees)} tokens`);
    bar.append(strip);
    const swatch = make("span", "swatch");
    swatch.className += " am-budget__swatch--frees";
    item(swatch, "a compaction would free about", budget.frees);
  }
  const head = `${budget.slot} · ${budget.model}`;
  const figures = make("div", "figures");
  const percent = Math.round((100 * budget.used) / Math.max(1, budget.window));
  for (const [name, value, rest] of [
    ["context now ", `${percent} %`, ` · ${grouped(budget.used)} of ${grouped(budget.window)} tokens`],
    ["spent so far ", budget.spent ? budget.spent.replace(/^spent in this slot: /, "") : "nothing", ""],
  ]) {
    const figure = make("span", "figure", name);
    figure.append(make("span", "value", value), make("span", "rest", rest));
    figures.append(figure);
  }
  const [source, ...others] = budget.notes.filter((note) => note !== budget.spent);
  const notes = [`compacts past ${grouped(budget.threshold)} · ${source}`, ...others];
  const last = budget.checkpoint ? [lastCompaction(make, budget.checkpoint, share)] : [];
  box.append(make("p", "head", head), figures, bar, legend, ...last, ...notes.map((note) => make("p", "notes", note)));
}
