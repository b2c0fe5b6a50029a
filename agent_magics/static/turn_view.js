// Built from widgets/src by `make views`; change it there.

// widgets/src/views/turn_state.js
function withChanges(places, changes) {
  const next = new Map(places);
  for (const [name, change] of Object.entries(changes)) {
    next.set(name, withChange(change.whole ? void 0 : places.get(name), change));
  }
  return next;
}
function withChange(before, change) {
  const items = new Map(before?.items);
  for (const item of change.items ?? []) {
    if (item.kind === "gone") items.delete(item.id);
    else if (item.kind !== void 0) items.set(item.id, item);
    else items.set(item.id, extended(
      /** @type {TextItem} */
      items.get(item.id),
      item
    ));
  }
  const status = change.status === void 0 ? before?.status ?? null : change.status;
  return { items, status };
}
var extended = (item, { cut = 0, add }) => ({
  ...item,
  text: item.text.slice(0, item.text.length - cut) + add
});

// widgets/src/live/markdown.js
var REST = 4;
function markdownBy(rendermime) {
  if (rendermime === void 0 || typeof rendermime?.createRenderer !== "function")
    return void 0;
  const texts = /* @__PURE__ */ new WeakMap();
  return (node, wanted) => {
    let text2 = texts.get(node);
    if (text2 === void 0) {
      const renderer = rendermime.createRenderer("text/markdown");
      text2 = { renderer, shown: "", wanted, isBusy: false };
      texts.set(node, text2);
      node.className += " am-turn__text--rendered";
      node.replaceChildren(renderer.node);
    }
    text2.wanted = wanted;
    if (!text2.isBusy) void render(rendermime, text2);
  };
}
async function render(rendermime, text2) {
  text2.isBusy = true;
  while (text2.shown !== text2.wanted) {
    const began = performance.now();
    const next = text2.wanted;
    const data = { "text/markdown": next };
    await text2.renderer.renderModel(rendermime.createModel({ data, trusted: false }));
    rendermime.latexTypesetter?.typeset(text2.renderer.node);
    text2.shown = next;
    const tookMs = performance.now() - began;
    if (text2.wanted !== next) await new Promise((resolve) => setTimeout(resolve, REST * tookMs));
  }
  text2.isBusy = false;
}

// widgets/src/views/elements.js
var KEEPS_KEYS = "data-lm-suppress-shortcuts";
var makerOf = (document2, block) => (tag, name, text2 = "") => {
  const node = document2.createElement(tag);
  node.className = `${block}__${name}`;
  node.textContent = text2;
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
function buttonOf(make, text2, press) {
  const button = make("button", "button", text2);
  button.setAttribute("type", "button");
  button.addEventListener("click", press);
  return button;
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

// widgets/src/live/live_turns.js
var PLACE = "am-turn--";
var ASK_AGAIN_MS = [250, 500, 1e3, 2e3, 4e3, 8e3];
var UNANSWERED_MS = 2500;
var NO_BUTTONS = "No buttons here while the cell runs: stop it with the kernel's interrupt button ■.";
var Places = class {
  /** @param {Model} model @param {View} view */
  constructor(model, view) {
    this.model = model;
    this.view = view;
    this.markdown = markdownBy(model.widget_manager?.rendermime);
    this.known = /* @__PURE__ */ new Map();
    this.unknown = /* @__PURE__ */ new Set();
    this.asked = /* @__PURE__ */ new Map();
    this.unanswered = /* @__PURE__ */ new Set();
    this.shown = /* @__PURE__ */ new Set();
    this.drawn = [];
    this.newest = null;
    this.receive = this.receive.bind(this);
    this.following = followOutputs(
      model,
      (output) => this.see(output),
      () => this.leave()
    );
    model.on("msg:custom", this.receive);
  }
  /** @param {string} name @param {number} [times] */
  ask(name, times = 0) {
    if (this.known.has(name) || this.unknown.has(name)) return;
    this.model.send({ kind: "here", places: [name] });
    const wait = ASK_AGAIN_MS[Math.min(times, ASK_AGAIN_MS.length - 1)];
    this.asked.set(
      name,
      setTimeout(() => this.ask(name, times + 1), wait)
    );
  }
  /** @param {Element} output */
  see(output) {
    const name = classBehind(output, PLACE);
    if (name === void 0 || this.unknown.has(name)) return;
    const place = this.known.get(name);
    if (place === void 0) this.seeUntold(output, name);
    else this.draw(this.drawnPlaceIn(output, name), place);
  }
  /** @param {Element} output @param {string} name */
  seeUntold(output, name) {
    if (this.unanswered.has(name) && drawnIn(output) === null) sayUnanswered(output);
    if (this.asked.has(name)) return;
    this.ask(name);
    setTimeout(() => {
      this.unanswered.add(name);
      this.following.look();
    }, UNANSWERED_MS);
  }
  /** @param {DrawnPlace} drawn @param {Place} place */
  draw(drawn, place) {
    if (drawn.drawn === place) return;
    const { name } = drawn;
    drawn.drawn = place;
    drawn.draw ??= this.view(drawn.root, {
      markdown: this.markdown,
      send: (message) => this.model.send({ ...message, place: name })
    });
    drawn.draw(place);
    for (const item of place.items.values()) {
      if (item.kind !== "question" || this.shown.has(`${name} ${item.id}`)) continue;
      this.shown.add(`${name} ${item.id}`);
      this.model.send({ kind: "shown", id: item.id, place: name });
    }
  }
  /** @param {Element} output @param {string} name */
  drawnPlaceIn(output, name) {
    const there = this.drawn.find(({ root }) => root.parentElement === output);
    if (there !== void 0) return there;
    const lost = this.drawn.find((each) => each.name === name && !each.root.isConnected);
    const found = lost ?? newPlace(name);
    if (lost === void 0) this.drawn.push(found);
    drawnIn(output)?.remove();
    replaceStatic(output, found.root);
    if (lost?.focused?.isConnected && document.activeElement === document.body) {
      lost.focused.focus({ preventScroll: true });
    }
    return found;
  }
  /** @param {Told} message */
  receive(message) {
    if (message.kind !== "told") return;
    const isGap = this.newest !== null && message.n !== this.newest + 1;
    this.newest = message.n;
    const changes = this.applicable(message.places, isGap);
    this.known = withChanges(this.known, changes);
    for (const name of Object.keys(changes)) clearTimeout(this.asked.get(name));
    if (isGap) {
      const running = [...this.known].filter(([, place]) => place.status?.phase !== "ended");
      this.model.send({ kind: "here", places: running.map(([name]) => name) });
    }
    this.following.look();
    this.drawn = this.drawn.filter(({ root }) => root.isConnected);
  }
  /**
   * Leave out what can't be applied: what is unknown, and parts of what isn't known whole.
   * @param {Record<string, PlaceChange | null>} places @param {boolean} isGap
   */
  applicable(places, isGap) {
    const changes = {};
    for (const [name, change] of Object.entries(places)) {
      if (change === null) this.unknown.add(name);
      else if (change.whole || this.known.has(name) && !isGap) changes[name] = change;
    }
    return changes;
  }
  leave() {
    this.model.off("msg:custom", this.receive);
    for (const timer of this.asked.values()) clearTimeout(timer);
  }
};
var liveTurns = (view) => ({
  /** @param {{model: Model}} context */
  initialize: ({ model }) => new Places(model, view).following.end
});
function sayUnanswered(output) {
  replaceStatic(output).textContent = NO_BUTTONS;
  showStatic(output, true);
}
function newPlace(name) {
  const root = document.createElement("div");
  const place = { name, root, draw: null, drawn: null, focused: null };
  root.addEventListener("focusin", ({ target }) => {
    place.focused = /** @type {HTMLElement} */
    target;
  });
  root.addEventListener(
    "focusout",
    () => queueMicrotask(() => {
      if (root.isConnected && !root.contains(document.activeElement)) place.focused = null;
    })
  );
  return place;
}

// widgets/src/views/words.js
var grouped = (count) => count.toLocaleString("en-US");
var counted = (count, noun) => `${grouped(count)} ${noun}${count === 1 ? "" : "s"}`;
var percentOf = (part, whole, digits = 2) => `${Math.min(100, 100 * part / Math.max(1, whole)).toFixed(digits)}%`;

// widgets/src/views/turn_bar.js
var QUIET_S = 2;
var NOT_HEARD_S = 3;
var NOT_HEARD = "The kernel doesn't hear this button while the cell runs; use its interrupt button ■.";
var WAITS = {
  waiting: "waiting for",
  thinking: "waiting for",
  answering: "waiting for",
  tools: "running"
};
var TurnBar = class {
  /** @param {Context} context */
  constructor({ make, send, now = () => performance.now() }) {
    this.make = make;
    this.now = now;
    this.node = make("div", "bar");
    this.said = make("span", "now");
    this.share = make("span", "context");
    this.stop = buttonOf(make, "Stop", () => {
      this.pressedAt = now();
      this.stop.disabled = true;
      send({ kind: "stop" });
      this.say();
    });
    this.spoken = make("span", "spoken");
    this.spoken.setAttribute("role", "status");
    this.spoken.setAttribute("aria-live", "polite");
    this.node.append(this.said, this.share, this.stop, this.spoken);
    this.status = null;
    this.beganAt = 0;
    this.pressedAt = 0;
    this.tick = void 0;
  }
  /** Say what is waited for, again each second. */
  say() {
    const { status, node, stop } = this;
    clearTimeout(this.tick);
    if (status === null) return;
    const isUnheard = this.pressedAt > 0 && this.now() - this.pressedAt >= NOT_HEARD_S * 1e3;
    const waitedS = (this.now() - this.beganAt) / 1e3;
    this.said.textContent = isUnheard ? NOT_HEARD : statusText(status, waitedS);
    if (isUnheard) stop.disabled = false;
    if (status.phase !== "ended" && node.isConnected) {
      this.tick = setTimeout(() => this.say(), 1e3);
    }
  }
  /** @param {Status | null} next @param {boolean} isNews whether anything of the turn changed */
  draw(next, isNews) {
    const { status } = this;
    this.node.hidden = next === null || next.phase === "ended" && !next.last;
    const isOther = next?.phase !== status?.phase || next?.about !== status?.about;
    if (next !== null && (isOther || isNews)) {
      this.beganAt = this.now() - (isNews && !isOther ? 0 : next.waited_s * 1e3);
    }
    if (next !== null && isOther) {
      this.pressedAt = 0;
      this.spoken.textContent = spokenStatus(next);
    }
    if (next?.context !== status?.context) drawShare(this.make, this.share, next?.context ?? null);
    this.status = next;
    this.drawStop(next);
    this.say();
  }
  /** @param {Status | null} status */
  drawStop(status) {
    const { stop } = this;
    const isStopping = status?.phase === "stopping";
    stop.hidden = this.share.hidden = status?.phase === "ended";
    if (this.pressedAt === 0) stop.disabled = isStopping && !status.about;
    if (!isStopping) stop.textContent = "Stop";
    else stop.textContent = status.about ? "Don't wait" : "Stopping …";
  }
};
function statusText({ phase, about, hint, last }, seconds) {
  if (phase === "ended") return last;
  if (phase === "asking") return "waiting for your answer";
  if (phase === "stopping") return about ? `stopping · waiting for ${about}` : "stopping";
  if (hint) return hint;
  if (seconds < QUIET_S) return "";
  return `${WAITS[phase] ?? ""} ${about} · ${grouped(Math.floor(seconds))} s`.trim();
}
function spokenStatus({ phase, about, last }) {
  const words = {
    thinking: "reasoning",
    answering: "answering",
    tools: `running ${about}`,
    asking: "a tool waits for your approval",
    stopping: about ? `stopping, waiting for ${about}` : "stopping",
    ended: last || "ended"
  };
  return words[phase] ?? "";
}
var shareInWords = ({ used, window }) => `context ${Math.round(100 * used / Math.max(1, window))} %`;
var spokenShare = (share) => `${shareInWords(share)}, ${grouped(share.used)} of ${grouped(share.window)} tokens, compacts past ${grouped(share.threshold)}`;
function drawShare(make, node, share) {
  if (share === null) {
    node.replaceChildren();
    return;
  }
  const meter = make("span", "meter");
  const [used, mark] = [make("span", "used"), make("span", "mark")];
  used.style.setProperty("width", percentOf(share.used, share.window, 1));
  mark.style.setProperty("left", percentOf(share.threshold, share.window, 1));
  meter.setAttribute("role", "meter");
  meter.setAttribute("aria-label", "Context");
  meter.setAttribute("aria-valuemin", "0");
  meter.setAttribute("aria-valuemax", String(share.window));
  meter.setAttribute("aria-valuenow", String(Math.min(share.used, share.window)));
  meter.setAttribute("aria-valuetext", spokenShare(share));
  meter.setAttribute("title", spokenShare(share));
  meter.append(used, mark);
  const text2 = make("span", "percent", shareInWords(share));
  text2.setAttribute("aria-hidden", "true");
  node.replaceChildren(meter, text2);
}

// widgets/src/views/turn_items.js
function text({ make, markdown }) {
  const node = make("div", "text");
  node.setAttribute("dir", "auto");
  return {
    node,
    update: (item) => {
      if (markdown === void 0) node.textContent = item.text;
      else markdown(node, item.text);
    }
  };
}
function reasoning({ make }) {
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
    update: (item) => {
      body.textContent = item.text;
      said.textContent = counted(item.text.trim().split(/\s+/).length, "word");
    }
  };
}
function noteLine({ make }) {
  const node = make("p", "note");
  node.setAttribute("dir", "auto");
  return { node, update: (item) => void (node.textContent = item.text) };
}
function toolCall(context) {
  const { make } = context;
  const node = make("details", "fold");
  const line = make("summary", "line");
  const code = make("code", "code");
  const said = make("span", "said");
  const body = make("div", "body");
  line.append(code, said);
  node.append(line, body);
  return {
    node,
    update: (item) => {
      code.textContent = item.line;
      said.className = `am-turn__said am-turn__said--${item.phase}`;
      said.textContent = item.phase === "running" ? "running …" : item.said;
      body.replaceChildren(...contentOf(context, item));
    }
  };
}
function contentOf({ make, send }, item) {
  const part = (label, said) => {
    const pre = readable(make("pre", "pre", said), label);
    pre.setAttribute("dir", "auto");
    return [make("p", "label", label), pre];
  };
  const parts = item.arguments.flatMap(([name, value]) => part(name, value));
  if (item.phase !== "running") parts.push(...part("result", item.result || "(nothing)"));
  if (item.cut > 0) {
    const label = `Show all (${grouped(item.cut)} more characters)`;
    parts.push(buttonOf(make, label, () => send({ kind: "open", id: item.id })));
  }
  return parts;
}

// widgets/src/views/turn_question.js
var MOST_ROWS = 20;
var question = (context, item) => new Question(context, item);
var Question = class {
  /** @param {Context} context @param {QuestionItem} item */
  constructor({ make, send }, item) {
    this.make = make;
    this.send = send;
    this.item = item;
    this.buttons = [];
    this.waiting = void 0;
    this.preview = readable(make("pre", "pre", item.preview), "what will run");
    this.editor = this.newEditor();
    this.reason = this.newReason();
    this.notice = make("p", "notice");
    this.notice.setAttribute("role", "status");
    this.yes = this.button("yes", item.does, () => this.answer("yes"));
    const no = this.button("no", "Refuse", () => this.answer("no"));
    this.always = this.button("always", "Always here", () => this.answer("always"));
    this.always.setAttribute("title", "This tool, in this session, until the kernel ends");
    this.change = this.button("edit", "Edit", () => this.toggleEditor());
    this.change.hidden = item.edits === null;
    this.because = this.button("because", "Say why not", () => this.askWhy(this.reason.hidden));
    const bar = make("div", "buttons");
    bar.append(this.yes, no, this.always, this.change, this.because);
    this.node = make("section", "question");
    this.node.setAttribute("role", "group");
    this.node.setAttribute("aria-label", item.head);
    const head = make("p", "head", item.head);
    this.node.append(head, this.preview, this.editor, bar, this.reason, this.notice);
  }
  newEditor() {
    const editor = this.make("textarea", "edit");
    editor.hidden = true;
    editor.setAttribute("aria-label", "what will run, to be changed");
    editor.setAttribute("spellcheck", "false");
    editor.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.ctrlKey || event.metaKey || event.isComposing) return;
      event.preventDefault();
      editor.setRangeText("\n", editor.selectionStart, editor.selectionEnd, "end");
    });
    return editor;
  }
  newReason() {
    const reason = this.make("input", "why");
    reason.hidden = true;
    reason.setAttribute("aria-label", "why not, told to the agent");
    reason.setAttribute("placeholder", "why not? The agent is told");
    reason.setAttribute("dir", "auto");
    reason.setAttribute("maxlength", "1000");
    reason.addEventListener("keydown", (event) => {
      if (event.isComposing || event.key !== "Enter" && event.key !== "Escape") return;
      event.preventDefault();
      if (event.key === "Enter") this.answer("no");
      else this.askWhy(false);
    });
    return reason;
  }
  /** @param {string} name @param {string} label @param {() => void} press */
  button(name, label, press) {
    const button = buttonOf(this.make, label, press);
    button.className = `am-turn__button am-turn__button--${name}`;
    this.buttons.push(button);
    return button;
  }
  toggleEditor() {
    const { editor, item } = this;
    const isEditing = editor.hidden;
    editor.hidden = !isEditing;
    this.preview.hidden = this.always.hidden = isEditing;
    this.change.textContent = isEditing ? "Don't edit" : "Edit";
    this.yes.textContent = isEditing ? `${item.does} as edited` : item.does;
    if (!isEditing) return;
    editor.value = item.edits ?? "";
    editor.setAttribute("rows", String(Math.min(MOST_ROWS, editor.value.split("\n").length + 1)));
    editor.focus();
  }
  /** @param {boolean} asks */
  askWhy(asks) {
    this.reason.hidden = !asks;
    this.because.textContent = asks ? "Don't say why" : "Say why not";
    (asks ? this.reason : this.because).focus();
  }
  /** @param {"yes" | "no" | "always"} word */
  answer(word) {
    this.enable(false);
    const isEdited = !this.editor.hidden && word === "yes";
    const edited = isEdited ? { word: "edited", text: this.editor.value } : {};
    const isReasoned = word === "no" && !this.reason.hidden;
    const reason = isReasoned ? { reason: this.reason.value.trim() } : {};
    this.send({ kind: "answer", id: this.item.id, word, ...edited, ...reason });
    this.waiting = setTimeout(() => this.say(NOT_HEARD), NOT_HEARD_S * 1e3);
  }
  /** Say what came of an answer, and let another one be given. @param {string} notice */
  say(notice) {
    clearTimeout(this.waiting);
    this.enable(true);
    this.notice.textContent = notice;
  }
  /** @param {boolean} areEnabled */
  enable(areEnabled) {
    for (const button of this.buttons) button.disabled = !areEnabled;
  }
  /** @param {QuestionItem} item */
  update({ notice }) {
    if (notice) this.say(notice);
  }
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

// widgets/src/views/turn_style.js
var STYLE = `
.am-turn { ${TEXT} overflow-wrap: anywhere; }
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
.am-turn .am-turn__said { ${MUTED} margin-inline-start: 8px; }
.am-turn .am-turn__said--failed { color: var(--jp-error-color1, inherit); }
.am-turn .am-turn__body { margin: 2px 0 6px 16px; }
.am-turn .am-turn__label { margin: 4px 0 0; font-size: .9em; ${MUTED} }
.am-turn pre.am-turn__pre { margin: 2px 0; padding: 6px 8px; max-height: 320px; overflow: auto; border-radius: 3px;
  white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: plaintext;
  ${CODE_FONT} color: inherit;
  border: 1px solid var(--jp-border-color2, rgba(128, 128, 128, .35)); background: var(--jp-cell-editor-background, transparent); }
.am-turn .am-turn__thoughts { white-space: pre-wrap; unicode-bidi: plaintext; max-height: 320px; overflow: auto;
  margin-bottom: 6px; ${MUTED} }
.am-turn p.am-turn__note { margin: 4px 0; font-style: italic; unicode-bidi: plaintext; }
.am-turn .am-turn__question { margin: 8px 0; padding: 8px 10px; border-radius: 4px;
  border: ${EDGE};
  border-inline-start: 4px solid var(--jp-warn-color1, #b8762a); }
.am-turn p.am-turn__head { margin: 0 0 4px; font-weight: 600; }
.am-turn p.am-turn__notice { margin: 6px 0 0; color: var(--jp-error-color1, inherit); }
.am-turn p.am-turn__notice:empty { display: none; }
.am-turn textarea.am-turn__edit { width: 100%; box-sizing: border-box; resize: vertical; tab-size: 4; padding: 6px 8px;
  ${CODE_FONT}
  color: inherit; background: var(--jp-layout-color1, Canvas); border: ${EDGE}; }
.am-turn input.am-turn__why { width: 100%; box-sizing: border-box; margin-top: 6px; padding: 4px 8px; font: inherit; color: inherit;
  background: var(--jp-layout-color1, Canvas); border: ${CONTROL_EDGE}; border-radius: 3px; }
.am-turn .am-turn__buttons { display: flex; flex-wrap: wrap; gap: 6px; margin-top: 6px; }
.am-turn button.am-turn__button { font: inherit; color: var(--jp-ui-font-color1, inherit); cursor: pointer; padding: 3px 12px; border-radius: 3px;
  border: ${CONTROL_EDGE}; background: var(--jp-layout-color1, transparent); }
.am-turn button.am-turn__button:hover:enabled { ${HOVERED} }
.am-turn button.am-turn__button:disabled { cursor: default; color: var(--jp-ui-font-color2, GrayText); border-style: dashed; }
.am-turn button.am-turn__button--yes { font-weight: 600; border-color: var(--jp-brand-color1, currentColor);
  box-shadow: inset 0 0 0 1px var(--jp-brand-color1, currentColor); }
.am-turn :is(button, summary, textarea, input, pre, .am-turn__thoughts):focus-visible {
  ${FOCUS_RING} outline-offset: 1px; }
.am-turn .am-turn__bar { display: flex; flex-wrap: wrap; align-items: center; gap: 4px 12px; min-height: 28px; margin-top: 4px;
  ${MUTED} }
.am-turn .am-turn__now { flex: 1 1 8em; min-width: 0; font-variant-numeric: tabular-nums; }
.am-turn .am-turn__context { display: inline-flex; align-items: center; gap: 6px; font-variant-numeric: tabular-nums; }
.am-turn .am-turn__meter { position: relative; width: 64px; height: 8px; border-radius: 2px; overflow: hidden;
  box-shadow: inset 0 0 0 1px var(--jp-border-color1, rgba(128, 128, 128, .5)); }
.am-turn .am-turn__used { position: absolute; inset: 0 auto 0 0; background: var(--jp-brand-color1, #5b7fd4); }
.am-turn .am-turn__mark { position: absolute; top: 0; bottom: 0; width: 2px; background: var(--jp-ui-font-color1, currentColor); }
.am-turn .am-turn__spoken { ${SPOKEN_ONLY} }
`;

// widgets/src/views/turn_view.js
function turnView(root, options) {
  const view = new TurnView(root, options);
  return (place) => view.draw(place);
}
var TurnView = class {
  /** @param {HTMLElement} root @param {Options} options */
  constructor(root, options) {
    this.root = root;
    const make = makerOf(root.ownerDocument, "am-turn");
    this.context = { ...options, make };
    this.drawn = /* @__PURE__ */ new Map();
    this.list = make("div", "items");
    this.bar = new TurnBar(this.context);
    const box = make("div", "box");
    box.className = "am-turn";
    keepKeysIn(box);
    box.append(this.list, this.bar.node);
    mount(root, STYLE, box);
  }
  /** @param {Place} place */
  draw(place) {
    let isNews = this.drop(place.items);
    for (const item of place.items.values()) {
      if (this.drawn.get(item.id)?.item === item) continue;
      this.drawItem(item);
      isNews = true;
    }
    this.bar.draw(place.status, isNews);
  }
  /** Take out what is gone, and tell whether anything was. @param {Map<number, Item>} items */
  drop(items) {
    const gone = [...this.drawn].filter(([id]) => !items.has(id));
    for (const [id, { part }] of gone) {
      part.node.remove();
      this.drawn.delete(id);
    }
    return gone.length > 0;
  }
  /** @param {Item} item */
  drawItem(item) {
    const known = this.drawn.get(item.id);
    const part = known?.part ?? partOf(this.context, item);
    this.drawn.set(item.id, { part, item });
    if (known === void 0) this.list.append(part.node);
    part.update(item);
    if (known === void 0 && item.kind === "question" && isInSight(this.root)) {
      part.node.scrollIntoView({ block: "nearest" });
    }
  }
};
function partOf(context, item) {
  switch (item.kind) {
    case "text":
      return text(context);
    case "reasoning":
      return reasoning(context);
    case "note":
      return noteLine(context);
    case "call":
      return toolCall(context);
    case "question":
      return question(context, item);
  }
}
function isInSight(root) {
  const { top, bottom } = root.getBoundingClientRect();
  return bottom > 0 && top < globalThis.innerHeight;
}

// widgets/src/entries/turn_view.js
var turn_view_default = liveTurns(turnView);
export {
  turn_view_default as default
};
