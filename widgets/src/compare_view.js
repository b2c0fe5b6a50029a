// Compare view: what several slots answered to the same prompt, side by side, differences marked.
// Draws ComparisonState (agent_magics/notebook/views/comparison/comparison.py); text is only ever set as text.

/**
 * @typedef {{id: string, label: string}} Prompt
 * @typedef {{text: string, differs: boolean}} Piece
 * @typedef {{id: string, status: string, turn: number | null, facts: string, alike: number | null,
 *   by_lines: boolean, pieces: Piece[]}} Column
 * @typedef {{prompts: Prompt[], chosen: string, prompt: string, base: string, columns: Column[],
 *   hint: string, note: string}} Comparison
 */

// Each rule outweighs those of JupyterLab for what stands in an HTML output.
const COMPARE_STYLE = `
.am-compare { position: relative; font: var(--jp-ui-font-size1, 13px)/1.4 var(--jp-ui-font-family, system-ui, sans-serif);
  color: var(--jp-ui-font-color1, var(--vscode-foreground, CanvasText)); margin: 4px 0; }
.am-compare [hidden] { display: none !important; }
.am-compare p.am-compare__hint { margin: 0; }
.am-compare p.am-compare__note { margin: 6px 0 0; font-size: .9em; color: var(--jp-ui-font-color2, inherit); }
.am-compare .am-compare__spoken { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.am-compare .am-compare__prompt { margin: 0 0 6px; max-height: 6.5em; overflow: auto; white-space: pre-wrap;
  overflow-wrap: anywhere; unicode-bidi: plaintext; font-weight: 600; }
.am-compare .am-compare__bar { display: flex; flex-wrap: wrap; align-items: center; gap: 4px 16px; margin: 0 0 8px; }
.am-compare label.am-compare__label { display: inline-flex; align-items: center; gap: 6px; min-width: 0; max-width: 100%; margin: 0; }
.am-compare .am-compare__name { flex: none; color: var(--jp-ui-font-color2, inherit); }
.am-compare select.am-compare__field { font: inherit; color: inherit; min-width: 0; max-width: 28em; padding: 2px 6px; border-radius: 3px;
  border: 1px solid var(--jp-border-color0, rgba(128, 128, 128, .7)); background: var(--jp-layout-color1, Canvas); }
.am-compare input.am-compare__check { margin: 0; }
.am-compare .am-compare__columns { display: grid; gap: 10px; grid-template-columns: repeat(auto-fit, minmax(min(100%, 18em), 1fr)); }
.am-compare .am-compare__column { min-width: 0; border-radius: 4px; border: 1px solid var(--jp-border-color1, rgba(128, 128, 128, .5)); }
.am-compare .am-compare__column--base { border-color: var(--jp-brand-color1, currentColor); }
.am-compare .am-compare__head { padding: 5px 10px; border-bottom: 1px solid var(--jp-border-color2, rgba(128, 128, 128, .35)); overflow-wrap: anywhere; }
.am-compare .am-compare__slot { font-weight: 600; unicode-bidi: isolate; }
.am-compare .am-compare__alike { margin-inline-start: 8px; }
.am-compare .am-compare__facts { font-size: .9em; color: var(--jp-ui-font-color2, inherit); font-variant-numeric: tabular-nums; }
.am-compare .am-compare__text { padding: 8px 10px; max-height: 30em; overflow: auto; white-space: pre-wrap; overflow-wrap: anywhere;
  unicode-bidi: plaintext; font-family: var(--jp-content-font-family, inherit); font-size: var(--jp-content-font-size1, inherit); }
.am-compare .am-compare__text:empty::before { content: "nothing was said"; color: var(--jp-ui-font-color2, inherit); font-style: italic; }
.am-compare mark.am-compare__differs { color: inherit; border-radius: 2px; text-decoration: underline; text-decoration-thickness: 2px;
  text-underline-offset: 3px; text-decoration-color: var(--jp-warn-color1, #b8762a); background: rgba(184, 118, 42, .18); }
.am-compare--plain mark.am-compare__differs { text-decoration: none; background: none; }
.am-compare :is(select, input, .am-compare__text, .am-compare__prompt):focus-visible {
  outline: 2px solid var(--jp-brand-color1, var(--vscode-focusBorder, LinkText)); outline-offset: 1px; }
`;

/** The live parts of what was drawn into a root. @type {WeakMap<HTMLElement, Comparing>} */
const DRAWN_COMPARISONS = new WeakMap();

/** Say how much of an answer is as in the base's. @param {number} alike @param {string} base */
export const spokenAlike = (alike, base) => (alike === 100 ? `the same as ${base}` : `${alike} % in common with ${base}`);

/** Say that how much is as in the base's isn't known. @param {string} base */
export const spokenByLines = (base) => `compared with ${base} by lines and sentences`;

const SPOKEN_PLACES = 5;
const SPOKEN_CHARACTERS = 60;

/** Cut what is long, between characters. @param {string} text */
const short = (text) => ([...text].length > SPOKEN_CHARACTERS ? `${[...text].slice(0, SPOKEN_CHARACTERS).join("")}…` : text);

/**
 * Say where an answer differs. Of the screen readers only JAWS and NVDA tell what is marked, as each is set
 * to, and words hidden in the text would break it up for all of them, at each mark. So it is told once, when
 * an answer is reached, as the description of its text; `<mark>` stays for those that tell it.
 * @param {Piece[]} pieces
 */
export function spokenPlaces(pieces) {
  const places = pieces.filter(({ differs }) => differs).map(({ text }) => short(text.replace(/\s+/g, " ")));
  if (places.length === 0) return "";
  const more = places.length - SPOKEN_PLACES;
  const told = [...places.slice(0, SPOKEN_PLACES), ...(more > 0 ? [`and ${more} more`] : [])];
  return `differs in ${places.length === 1 ? "one place" : `${places.length} places`}: ${told.join("; ")}`;
}

/** Say what is compared, when a person chose it. @param {Comparison} state @param {boolean} namesPrompt */
export function spokenChoice(state, namesPrompt) {
  const others = state.columns.filter(({ id, status }) => id !== state.base && status !== "not asked");
  const shares = others.map(({ id, alike, by_lines: byLines }) => {
    const share = byLines ? "by lines and sentences" : alike === 100 ? "the same" : `${alike} % in common`;
    return others.length === 1 ? share : `${id} ${share}`;
  });
  const asked = namesPrompt ? [state.prompts.find(({ id }) => id === state.chosen)?.label ?? ""] : [];
  return [...asked, `compared with ${state.base}`, ...shares].join(", ");
}

/** The comparison in one root: made once, so that focus and scrolling outlast each change. */
class Comparing {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.document = root.ownerDocument;
    this.send = () => {};
    this.columns = new Map(); // slot: {node, drawn, base}
    this.box = this.make("div", "box");
    this.box.className = "am-compare";
    this.hint = this.make("p", "hint");
    this.prompt = this.make("div", "prompt");
    this.prompt.setAttribute("tabindex", "0");
    this.prompt.setAttribute("role", "group");
    this.prompt.setAttribute("aria-label", "What was asked");
    this.asked = this.choice("prompt", (prompt) => ({ kind: "choose", prompt }));
    this.base = this.choice("compared with", (base) => ({ kind: "choose", base }));
    this.bar = this.make("div", "bar");
    this.bar.append(this.asked.label, this.base.label, this.marking());
    this.grid = this.make("div", "columns");
    this.note = this.make("p", "note");
    this.spoken = this.make("div", "spoken");
    this.spoken.setAttribute("role", "status");
    this.marks = true;
    const style = this.document.createElement("style");
    style.textContent = COMPARE_STYLE;
    this.box.append(this.hint, this.prompt, this.bar, this.grid, this.note, this.spoken);
    // JupyterLab looks for its attribute on the focused element itself, or x and d d cut the cell.
    this.box.addEventListener("focusin", ({ target }) => target.setAttribute("data-lm-suppress-shortcuts", "true"));
    root.replaceChildren(style, this.box);
  }

  /** @param {string} tag @param {string} name @param {string} [text] */
  make(tag, name, text = "") {
    const node = this.document.createElement(tag);
    node.className = `am-compare__${name}`;
    node.textContent = text;
    return node;
  }

  /**
   * Make a labelled list to choose from. `sent` are the choices that the kernel hasn't answered yet, `shown`
   * what its last state said.
   * @param {string} name @param {(value: string) => object} message
   */
  choice(name, message) {
    const label = this.make("label", "label");
    const field = this.make("select", "field");
    const choice = { label, field, drawn: "", sent: [], shown: "" };
    field.addEventListener("change", () => {
      choice.sent.push(field.value);
      this.send(message(field.value));
    });
    label.append(this.make("span", "name", name), field);
    return choice;
  }

  marking() {
    const label = this.make("label", "label");
    const check = this.make("input", "check");
    check.setAttribute("type", "checkbox");
    check.checked = true;
    check.addEventListener("change", () => {
      this.marks = check.checked;
      this.box.className = check.checked ? "am-compare" : "am-compare am-compare--plain";
      for (const parts of this.columns.values()) this.describe(parts);
    });
    label.append(check, this.make("span", "name", "mark what differs"));
    return label;
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
    const isPrompt = this.offer(this.asked, state.prompts, state.chosen);
    const answered = state.columns.filter(({ status }) => status !== "not asked");
    const isBase = this.offer(this.base, answered.map(({ id }) => ({ id, label: id })), state.base);
    if (isPrompt || isBase) this.spoken.textContent = spokenChoice(state, isPrompt);
    const nodes = state.columns.map((column) => this.columnOf(column, state.base));
    const known = new Set(state.columns.map(({ id }) => id));
    for (const id of [...this.columns.keys()]) if (!known.has(id)) this.columns.delete(id);
    const stand = [...this.grid.children];
    if (nodes.some((node, at) => node !== stand[at]) || nodes.length !== stand.length) this.grid.replaceChildren(...nodes);
  }

  /** Show what can be chosen; one choice alone is none. True: what a person chose is shown now. */
  offer(choice, options, chosen) {
    choice.label.hidden = options.length < 2;
    const drawn = JSON.stringify(options);
    if (choice.drawn !== drawn) {
      choice.drawn = drawn;
      const made = options.map(({ id, label }) => {
        const option = this.make("option", "option", label);
        option.setAttribute("value", id);
        return option;
      });
      choice.field.replaceChildren(...made);
    }
    const isAnswered = this.answered(choice, options, chosen);
    const value = choice.sent.at(-1) ?? chosen;
    if (choice.field.value !== value) choice.field.value = value;
    return isAnswered;
  }

  /**
   * Take from what was sent what a state answers. A state that says what the last one did was on its way
   * before the choice came; one that says something else, or no longer offers the choice, answers it.
   */
  answered(choice, options, chosen) {
    const at = choice.sent.lastIndexOf(chosen);
    const isOver = at < 0 && chosen !== choice.shown;
    choice.shown = chosen;
    const known = new Set(options.map(({ id }) => id));
    choice.sent = isOver ? [] : choice.sent.slice(at + 1).filter((value) => known.has(value));
    return at >= 0 && choice.sent.length === 0;
  }

  /** @param {Column} column @param {string} base */
  columnOf(column, base) {
    const there = this.columns.get(column.id);
    if (there?.drawn === column && there.base === base) return there.node;
    const parts = there ?? this.newColumn(column);
    const isBase = column.id === base;
    parts.node.className = `am-compare__column${isBase ? " am-compare__column--base" : ""}`;
    const share = column.alike === null ? "" : spokenAlike(column.alike, base);
    parts.alike.textContent = column.by_lines ? spokenByLines(base) : share;
    const facts = [column.turn === null ? "" : `turn ${column.turn}`, column.facts];
    if (column.status !== "complete") facts.unshift(column.status);
    parts.facts.textContent = facts.filter((fact) => fact !== "").join(" · ");
    const was = parts.text.scrollTop;
    parts.text.replaceChildren(...column.pieces.map((piece) => this.piece(piece)));
    parts.text.hidden = column.status === "not asked";
    parts.text.scrollTop = was;
    Object.assign(parts, { drawn: column, base });
    this.describe(parts);
    this.columns.set(column.id, parts);
    return parts.node;
  }

  /** Tell those who hear the answer where it differs, while that is marked. */
  describe({ places, drawn }) {
    places.textContent = this.marks ? spokenPlaces(drawn.pieces) : "";
  }

  /** @param {Column} column */
  newColumn(column) {
    const node = this.make("section", "column");
    node.setAttribute("aria-label", `Answer in ${column.id}`);
    const head = this.make("div", "head");
    const alike = this.make("span", "alike");
    const facts = this.make("div", "facts");
    head.append(this.make("span", "slot", column.id), alike, facts);
    const text = this.make("div", "text");
    text.setAttribute("tabindex", "0");
    text.setAttribute("role", "group");
    text.setAttribute("aria-label", `What ${column.id} answered`);
    const places = this.make("div", "places");
    places.hidden = true; // a description is told all the same
    places.setAttribute("id", `am-compare-${Math.random().toString(36).slice(2)}`);
    text.setAttribute("aria-describedby", places.getAttribute("id"));
    node.append(head, text, places);
    return { node, alike, facts, text, places, drawn: null, base: "" };
  }

  /** @param {Piece} piece */
  piece({ text, differs }) {
    return this.make(differs ? "mark" : "span", differs ? "differs" : "same", text);
  }
}

/**
 * Draw a comparison into `root`, or bring what it drew there up to date. `send(message)` is called
 * for what a person chooses.
 * @param {HTMLElement} root @param {Comparison} state @param {{send?: (message: object) => void}} [options]
 */
export function compareView(root, state, { send = () => {} } = {}) {
  const comparing = DRAWN_COMPARISONS.get(root) ?? new Comparing(root);
  DRAWN_COMPARISONS.set(root, comparing);
  comparing.update(state, send);
}
