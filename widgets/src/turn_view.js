// Turn view: what a cell shows while its turn runs. The answer as it grows, private reasoning and
// tool calls folded, a question with its buttons, a stop button, how full the context is.
// Draws a place (agent_magics/notebook/views/turn/turn_state.py); text is only ever set as text. Markdown is
// given, already safe, to the front end's own renderer where there is one (live_turns.js).

/**
 * @typedef {{used: number, window: number, threshold: number}} Share
 * @typedef {{phase: string, about: string, waited_s: number, hint: string, context: Share | null,
 *   last: string}} Status
 * @typedef {{id: number, kind: string, text?: string, line?: string, phase?: string, said?: string,
 *   arguments?: [string, string][], result?: string, cut?: number, head?: string,
 *   preview?: string, does?: string, edits?: string | null, notice?: string}} Item
 * @typedef {{items: Map<number, Item>, status: Status | null}} Place
 * @typedef {{send: (message: object) => void, markdown?: (node: HTMLElement, text: string) => void,
 *   now?: () => number}} Options
 */

const QUIET_S = 2; // of silence before we say what is waited for
const DEAF_S = 3; // without an answer to a button
const UNHEARD = "The kernel doesn't hear this button while the cell runs; use its interrupt button ■.";
const WAITS = { waiting: "waiting for", thinking: "waiting for", answering: "waiting for", tools: "running" };

// Each rule outweighs those of JupyterLab for what stands in its Markdown.
const TURN_STYLE = `
.am-turn { font: var(--jp-ui-font-size1, 13px)/1.4 var(--jp-ui-font-family, system-ui, sans-serif);
  color: var(--jp-ui-font-color1, var(--vscode-foreground, CanvasText)); overflow-wrap: anywhere; }
.am-turn [hidden][hidden] { display: none; }
.am-turn .am-turn__text { white-space: pre-wrap; unicode-bidi: plaintext; }
.am-turn .am-turn__text--rendered { white-space: normal; font-family: var(--jp-content-font-family, inherit);
  font-size: var(--jp-content-font-size1, inherit); }
.am-turn .am-turn__text--rendered p { text-align: start; }
.am-turn .am-turn__text--rendered a { text-decoration: underline; }
.am-turn .am-turn__text--rendered:not(:last-child) > * > :last-child { margin-bottom: 1em; }
.am-turn details.am-turn__fold { margin: 4px 0; padding: 0; border: 0; background: none; }
.am-turn summary.am-turn__line { cursor: pointer; padding: 2px 0; border-radius: 3px; }
.am-turn .am-turn__code { font-family: var(--jp-code-font-family, monospace); font-size: var(--jp-code-font-size, 13px);
  unicode-bidi: plaintext; color: inherit; }
.am-turn .am-turn__said { color: var(--jp-ui-font-color2, inherit); margin-inline-start: 8px; }
.am-turn .am-turn__said--failed { color: var(--jp-error-color1, inherit); }
.am-turn .am-turn__body { margin: 2px 0 6px 16px; }
.am-turn .am-turn__label { margin: 4px 0 0; font-size: .9em; color: var(--jp-ui-font-color2, inherit); }
.am-turn pre.am-turn__pre { margin: 2px 0; padding: 6px 8px; max-height: 320px; overflow: auto; border-radius: 3px;
  white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: plaintext;
  font: var(--jp-code-font-size, 13px)/1.4 var(--jp-code-font-family, monospace); color: inherit;
  border: 1px solid var(--jp-border-color2, rgba(128, 128, 128, .35)); background: var(--jp-cell-editor-background, transparent); }
.am-turn .am-turn__thoughts { white-space: pre-wrap; unicode-bidi: plaintext; max-height: 320px; overflow: auto;
  margin-bottom: 6px; color: var(--jp-ui-font-color2, inherit); }
.am-turn p.am-turn__note { margin: 4px 0; font-style: italic; unicode-bidi: plaintext; }
.am-turn .am-turn__question { margin: 8px 0; padding: 8px 10px; border-radius: 4px;
  border: 1px solid var(--jp-border-color1, rgba(128, 128, 128, .5));
  border-inline-start: 4px solid var(--jp-warn-color1, #b8762a); }
.am-turn p.am-turn__head { margin: 0 0 4px; font-weight: 600; }
.am-turn p.am-turn__notice { margin: 6px 0 0; color: var(--jp-error-color1, inherit); }
.am-turn p.am-turn__notice:empty { display: none; }
.am-turn textarea.am-turn__edit { width: 100%; box-sizing: border-box; resize: vertical; tab-size: 4; padding: 6px 8px;
  font: var(--jp-code-font-size, 13px)/1.4 var(--jp-code-font-family, monospace);
  color: inherit; background: var(--jp-layout-color1, Canvas); border: 1px solid var(--jp-border-color1, rgba(128, 128, 128, .5)); }
.am-turn input.am-turn__why { width: 100%; box-sizing: border-box; margin-top: 6px; padding: 4px 8px; font: inherit; color: inherit;
  background: var(--jp-layout-color1, Canvas); border: 1px solid var(--jp-border-color0, rgba(128, 128, 128, .7)); border-radius: 3px; }
.am-turn .am-turn__buttons { display: flex; flex-wrap: wrap; gap: 6px; margin-top: 6px; }
.am-turn button.am-turn__button { font: inherit; color: var(--jp-ui-font-color1, inherit); cursor: pointer; padding: 3px 12px; border-radius: 3px;
  border: 1px solid var(--jp-border-color0, rgba(128, 128, 128, .7)); background: var(--jp-layout-color1, transparent); }
.am-turn button.am-turn__button:hover:enabled { background: var(--jp-layout-color2, rgba(128, 128, 128, .15)); }
.am-turn button.am-turn__button:disabled { cursor: default; color: var(--jp-ui-font-color2, GrayText); border-style: dashed; }
.am-turn button.am-turn__button--yes { font-weight: 600; border-color: var(--jp-brand-color1, currentColor);
  box-shadow: inset 0 0 0 1px var(--jp-brand-color1, currentColor); }
.am-turn :is(button, summary, textarea, input, pre, .am-turn__thoughts):focus-visible {
  outline: 2px solid var(--jp-brand-color1, var(--vscode-focusBorder, LinkText)); outline-offset: 1px; }
.am-turn .am-turn__bar { display: flex; flex-wrap: wrap; align-items: center; gap: 4px 12px; min-height: 28px; margin-top: 4px;
  color: var(--jp-ui-font-color2, inherit); }
.am-turn .am-turn__now { flex: 1 1 8em; min-width: 0; font-variant-numeric: tabular-nums; }
.am-turn .am-turn__context { display: inline-flex; align-items: center; gap: 6px; font-variant-numeric: tabular-nums; }
.am-turn .am-turn__meter { position: relative; width: 64px; height: 8px; border-radius: 2px; overflow: hidden;
  box-shadow: inset 0 0 0 1px var(--jp-border-color1, rgba(128, 128, 128, .5)); }
.am-turn .am-turn__used { position: absolute; inset: 0 auto 0 0; background: var(--jp-brand-color1, #5b7fd4); }
.am-turn .am-turn__mark { position: absolute; top: 0; bottom: 0; width: 2px; background: var(--jp-ui-font-color1, currentColor); }
.am-turn .am-turn__spoken { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
`;

/** Take in what has changed; places that nothing was said of stay the same objects.
 * @param {Map<string, Place>} places @param {Record<string, any>} told */
export function applied(places, told) {
  const next = new Map(places);
  for (const [name, change] of Object.entries(told)) {
    const before = (change.whole ? undefined : places.get(name)) ?? { items: new Map(), status: null };
    const items = new Map(before.items);
    for (const item of change.items ?? []) {
      if (item.kind === "gone") items.delete(item.id);
      else items.set(item.id, item.kind === undefined ? grown(items.get(item.id), item) : item);
    }
    next.set(name, { items, status: change.status === undefined ? before.status : change.status });
  }
  return next;
}

/** @param {Item} item @param {{cut?: number, add: string}} change */
const grown = (item, { cut = 0, add }) => ({ ...item, text: item.text.slice(0, item.text.length - cut) + add });

/** Say in words how full the context is. @param {Share} share */
export const spokenShare = ({ used, window, threshold }) =>
  `context ${Math.round((100 * used) / Math.max(1, window))} %, ${used.toLocaleString("en-US")} of ` +
  `${window.toLocaleString("en-US")} tokens, compacts past ${threshold.toLocaleString("en-US")}`;

/**
 * Make a turn view in `root`; the result draws a place into it, again at each change. What a person
 * opened stays open, what has the focus keeps it.
 * @param {HTMLElement} root @param {Options} options
 */
export function turnView(root, options) {
  const document = root.ownerDocument;
  const now = options.now ?? (() => performance.now());
  /** @param {string} tag @param {string} name @param {string} [text] */
  const make = (tag, name, text = "") => {
    const node = document.createElement(tag);
    node.className = `am-turn__${name}`;
    node.textContent = text;
    return node;
  };
  const context = { ...options, make };
  const style = document.createElement("style");
  style.textContent = TURN_STYLE;
  const box = make("div", "box");
  box.className = "am-turn";
  // JupyterLab looks for it on what has the focus; without it x cuts the cell.
  box.addEventListener("focusin", ({ target }) => target.setAttribute("data-lm-suppress-shortcuts", "true"));
  const list = make("div", "items");
  const bar = turnBar(context, now);
  box.append(list, bar.node);
  root.replaceChildren(style, box);

  /** @type {Map<number, {node: HTMLElement, update: (item: Item) => void, item: Item}>} */
  const drawn = new Map();
  return (/** @type {Place} */ place) => {
    let isNews = false;
    for (const [id, { node }] of drawn) {
      if (place.items.has(id)) continue;
      node.remove();
      drawn.delete(id);
      isNews = true;
    }
    for (const item of place.items.values()) {
      const known = drawn.get(item.id);
      if (known?.item === item) continue;
      isNews = true;
      if (known !== undefined) {
        known.item = item;
        known.update(item);
        continue;
      }
      const made = KINDS[item.kind](context, item);
      drawn.set(item.id, { ...made, item });
      list.append(made.node);
      made.update(item);
      if (item.kind === "question" && isInSight(root)) made.node.scrollIntoView({ block: "nearest" });
    }
    bar.draw(place.status, isNews);
  };
}

/** Tell whether somebody may be looking at it. @param {Element} root */
function isInSight(root) {
  const { top, bottom } = root.getBoundingClientRect();
  return bottom > 0 && top < globalThis.innerHeight;
}

const KINDS = { text: answerText, reasoning: thoughts, call: toolCall, note: noteLine, question: question };

/** @param {any} context */
function answerText({ make, markdown }) {
  const node = make("div", "text");
  node.setAttribute("dir", "auto");
  return {
    node,
    update: ({ text }) => {
      if (markdown === undefined) node.textContent = text;
      else markdown(node, text);
    },
  };
}

/** @param {any} context */
function thoughts({ make }) {
  const node = make("details", "fold");
  const line = make("summary", "line", "Reasoning");
  const said = make("span", "said");
  const body = make("div", "thoughts");
  body.setAttribute("dir", "auto");
  body.setAttribute("tabindex", "0");
  line.append(said);
  node.append(line, body);
  return {
    node,
    update: ({ text }) => {
      body.textContent = text;
      const words = text.trim().split(/\s+/).length;
      said.textContent = `${words.toLocaleString("en-US")} word${words === 1 ? "" : "s"}`;
    },
  };
}

/** @param {any} context */
function noteLine({ make }) {
  const node = make("p", "note");
  node.setAttribute("dir", "auto");
  return { node, update: ({ text }) => void (node.textContent = text) };
}

/** @param {any} context */
function toolCall({ make, send }) {
  const node = make("details", "fold");
  const line = make("summary", "line");
  const code = make("code", "code");
  const said = make("span", "said");
  const body = make("div", "body");
  line.append(code, said);
  node.append(line, body);
  const part = (label, text) => {
    const pre = make("pre", "pre", text);
    pre.setAttribute("dir", "auto");
    pre.setAttribute("tabindex", "0");
    pre.setAttribute("role", "group"); // what has no role can have no name
    pre.setAttribute("aria-label", label);
    return [make("p", "label", label), pre];
  };
  return {
    node,
    update: (item) => {
      code.textContent = item.line;
      said.className = `am-turn__said am-turn__said--${item.phase}`;
      said.textContent = item.phase === "running" ? "running …" : item.said;
      const parts = item.arguments.flatMap(([name, text]) => part(name, text));
      if (item.phase !== "running") parts.push(...part("result", item.result || "(nothing)"));
      if (item.cut > 0) {
        const more = make("button", "button", `Show all (${item.cut.toLocaleString("en-US")} more characters)`);
        more.setAttribute("type", "button");
        more.addEventListener("click", () => send({ kind: "open", id: item.id }));
        parts.push(more);
      }
      body.replaceChildren(...parts);
    },
  };
}

/** @param {any} context @param {Item} item */
function question({ make, send }, item) {
  const node = make("section", "question");
  node.setAttribute("role", "group");
  node.setAttribute("aria-label", item.head);
  const preview = make("pre", "pre", item.preview);
  preview.setAttribute("tabindex", "0");
  preview.setAttribute("role", "group");
  preview.setAttribute("aria-label", "what will run");
  const edit = make("textarea", "edit");
  edit.hidden = true;
  edit.setAttribute("aria-label", "what will run, to be changed");
  edit.setAttribute("spellcheck", "false");
  edit.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.ctrlKey || event.metaKey || event.isComposing) return;
    event.preventDefault(); // JupyterLab lets no Enter begin a line in a cell's output
    edit.setRangeText("\n", edit.selectionStart, edit.selectionEnd, "end");
  });
  const why = make("input", "why");
  why.hidden = true;
  why.setAttribute("aria-label", "why not, told to the agent");
  why.setAttribute("placeholder", "why not? The agent is told");
  why.setAttribute("dir", "auto");
  why.setAttribute("maxlength", "1000");
  why.addEventListener("keydown", (event) => {
    if (event.isComposing || (event.key !== "Enter" && event.key !== "Escape")) return;
    event.preventDefault();
    if (event.key === "Enter") answer("no");
    else ask(false);
  });
  const buttons = make("div", "buttons");
  const notice = make("p", "notice");
  notice.setAttribute("role", "status");
  const all = [];
  let deaf = 0;
  const answer = (word) => {
    for (const each of all) each.disabled = true;
    const text = edit.hidden || word !== "yes" ? {} : { word: "edited", text: edit.value };
    const reason = word === "no" && !why.hidden ? { reason: why.value.trim() } : {};
    send({ kind: "answer", id: item.id, word, ...text, ...reason });
    deaf = setTimeout(() => hear(UNHEARD), DEAF_S * 1000);
  };
  const hear = (said) => {
    clearTimeout(deaf);
    for (const each of all) each.disabled = false;
    notice.textContent = said;
  };
  const button = (name, label, press) => {
    const made = make("button", "button", label);
    made.className = `am-turn__button am-turn__button--${name}`;
    made.setAttribute("type", "button");
    made.addEventListener("click", press);
    all.push(made);
    return made;
  };
  const yes = button("yes", item.does, () => answer("yes"));
  const always = button("always", "Always here", () => answer("always"));
  always.setAttribute("title", "This tool, in this session, until the kernel ends");
  const change = button("edit", "Edit", () => {
    edit.hidden = !edit.hidden;
    preview.hidden = always.hidden = !edit.hidden;
    change.textContent = edit.hidden ? "Edit" : "Don't edit";
    yes.textContent = edit.hidden ? item.does : `${item.does} as edited`;
    if (edit.hidden) return;
    edit.value = item.edits;
    edit.setAttribute("rows", String(Math.min(20, item.edits.split("\n").length + 1)));
    edit.focus();
  });
  change.hidden = item.edits === null;
  const because = button("because", "Say why not", () => ask(why.hidden));
  const ask = (asks) => {
    why.hidden = !asks;
    because.textContent = asks ? "Don't say why" : "Say why not";
    (asks ? why : because).focus();
  };
  buttons.append(yes, button("no", "Refuse", () => answer("no")), always, change, because);
  node.append(make("p", "head", item.head), preview, edit, buttons, why, notice);
  const update = (newest) => {
    if (newest.notice) hear(newest.notice);
  };
  return { node, update };
}

/** The line at the end: what is done or waited for, how full the context is, and the way to stop.
 * @param {any} context @param {() => number} now */
function turnBar({ make, send }, now) {
  const node = make("div", "bar");
  const said = make("span", "now");
  const share = make("span", "context");
  const stop = make("button", "button", "Stop");
  stop.setAttribute("type", "button");
  const spoken = make("span", "spoken");
  spoken.setAttribute("role", "status");
  spoken.setAttribute("aria-live", "polite");
  node.append(said, share, stop, spoken);

  let status = null;
  let beganAt = 0;
  let tick = 0;
  let pressedAt = 0;
  stop.addEventListener("click", () => {
    pressedAt = now();
    stop.disabled = true;
    send({ kind: "stop" });
    say();
  });

  const say = () => {
    clearTimeout(tick);
    if (status === null) return;
    const isDeaf = pressedAt > 0 && now() - pressedAt >= DEAF_S * 1000;
    said.textContent = isDeaf ? UNHEARD : sentence(status, (now() - beganAt) / 1000);
    if (isDeaf) stop.disabled = false;
    if (status.phase !== "ended" && node.isConnected) tick = setTimeout(say, 1000);
  };
  const draw = (next, isNews) => {
    node.hidden = next === null || (next.phase === "ended" && !next.last);
    const isOther = next?.phase !== status?.phase || next?.about !== status?.about;
    if (next !== null && (isOther || isNews)) {
      beganAt = now() - (isNews && !isOther ? 0 : next.waited_s * 1000);
    }
    if (next !== null && isOther) {
      pressedAt = 0;
      spoken.textContent = spokenStatus(next);
    }
    if (next?.context !== status?.context) drawShare(make, share, next?.context ?? null);
    status = next;
    stop.hidden = share.hidden = next?.phase === "ended";
    if (pressedAt === 0) stop.disabled = next?.phase === "stopping" && !next.about;
    stop.textContent = next?.phase !== "stopping" ? "Stop" : next.about ? "Don't wait" : "Stopping …";
    say();
  };
  return { node, draw };
}

/** Say what is waited for, and nothing where nothing is. @param {Status} status @param {number} seconds */
export function sentence({ phase, about, hint, last }, seconds) {
  if (phase === "ended") return last;
  if (phase === "asking") return "waiting for your answer";
  if (phase === "stopping") return about ? `stopping · waiting for ${about}` : "stopping";
  if (hint) return hint;
  if (seconds < QUIET_S) return "";
  return `${WAITS[phase] ?? ""} ${about} · ${Math.floor(seconds).toLocaleString("en-US")} s`.trim();
}

/** What a screen reader says when the phase changes. @param {Status} status */
export function spokenStatus({ phase, about, last }) {
  const words = {
    thinking: "reasoning",
    answering: "answering",
    tools: `running ${about}`,
    asking: "a tool waits for your approval",
    stopping: about ? `stopping, waiting for ${about}` : "stopping",
    ended: last || "ended",
  };
  return words[phase] ?? "";
}

/** @param {Function} make @param {HTMLElement} node @param {Share | null} share */
function drawShare(make, node, share) {
  if (share === null) {
    node.replaceChildren();
    return;
  }
  const percent = (tokens) => `${Math.min(100, (100 * tokens) / Math.max(1, share.window)).toFixed(1)}%`;
  const meter = make("span", "meter");
  const [used, mark] = [make("span", "used"), make("span", "mark")];
  used.style.setProperty("width", percent(share.used));
  mark.style.setProperty("left", percent(share.threshold));
  meter.setAttribute("role", "meter");
  meter.setAttribute("aria-label", "Context");
  meter.setAttribute("aria-valuemin", "0");
  meter.setAttribute("aria-valuemax", String(share.window));
  meter.setAttribute("aria-valuenow", String(Math.min(share.used, share.window)));
  meter.setAttribute("aria-valuetext", spokenShare(share));
  meter.setAttribute("title", spokenShare(share));
  meter.append(used, mark);
  const text = make("span", "percent", `context ${Math.round((100 * share.used) / Math.max(1, share.window))} %`);
  text.setAttribute("aria-hidden", "true");
  node.replaceChildren(meter, text);
}
