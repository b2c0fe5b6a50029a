// Slot tabs: the branches of a session, which one is current, and the way to another.
// Draws the session state (agent_magics/notebook/state.py); text is only ever set as text.

/**
 * @typedef {{id: string, mode: string, mode_label: string, parent: string | null,
 *   forked_at_turn: number | null, depth: number, turns: number, messages: number,
 *   tokens: number, is_current: boolean, is_running: boolean, model: string | null}} SlotState
 * @typedef {{title: string, model: string, is_readonly: boolean, current: string,
 *   slots: SlotState[]}} SessionState
 */

// Each rule outweighs those of JupyterLab for what stands in an HTML output.
const STYLE = `
.am-tabs { font: var(--jp-ui-font-size1, 13px)/1.4 var(--jp-ui-font-family, system-ui, sans-serif);
  color: var(--jp-ui-font-color1, var(--vscode-foreground, CanvasText)); margin: 4px 0; }
.am-tabs .am-tabs__head { color: var(--jp-ui-font-color2, inherit); margin: 0 0 6px; overflow-wrap: anywhere; }
.am-tabs .am-tabs__list { display: flex; flex-wrap: wrap; gap: 6px; }
.am-tabs .am-tabs__tab { font: inherit; color: inherit; text-align: left; cursor: pointer; max-width: 100%;
  display: flex; flex-direction: column;
  padding: 6px 10px; border-radius: 4px; overflow-wrap: anywhere;
  border: 1px solid var(--jp-border-color1, rgba(128, 128, 128, .5));
  background: var(--jp-layout-color1, transparent); }
.am-tabs .am-tabs__tab:hover { background: var(--jp-layout-color2, rgba(128, 128, 128, .15)); }
.am-tabs .am-tabs__tab:focus-visible { outline: 2px solid var(--jp-brand-color1, var(--vscode-focusBorder, LinkText)); outline-offset: 1px; }
.am-tabs .am-tabs__tab[aria-selected="true"] { border-color: var(--jp-brand-color1, var(--vscode-focusBorder, LinkText));
  box-shadow: inset 0 3px 0 var(--jp-brand-color1, var(--vscode-focusBorder, LinkText)); }
.am-tabs .am-tabs__name { display: block; font-weight: 600; }
.am-tabs .am-tabs__branch { font-weight: 400; color: var(--jp-ui-font-color2, inherit); }
.am-tabs .am-tabs__facts, .am-tabs .am-tabs__from { display: block; font-size: .9em;
  color: var(--jp-ui-font-color2, inherit); font-variant-numeric: tabular-nums; }
.am-tabs .am-tabs__mode { margin-left: 6px; padding: 0 5px; border-radius: 3px; font-size: .85em; font-weight: 400;
  border: 1px solid var(--jp-border-color1, rgba(128, 128, 128, .5)); }
.am-tabs .am-tabs__notice:empty { display: none; }
.am-tabs .am-tabs__notice { margin: 6px 0 0; color: var(--jp-error-color1, inherit); overflow-wrap: anywhere; }
@container (max-width: 420px) {
  .am-tabs .am-tabs__list { flex-direction: column; }
  .am-tabs .am-tabs__tab { width: 100%; box-sizing: border-box; }
}
`;

const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

/** @param {number} count @param {string} noun */
function counted(count, noun) {
  return `${count.toLocaleString("en-US")} ${noun}${count === 1 ? "" : "s"}`;
}

/** @param {SlotState} slot */
function origin(slot) {
  if (slot.parent === null) return "";
  return `from ${slot.parent}` + (slot.forked_at_turn === null ? "" : ` at turn ${slot.forked_at_turn}`);
}

/** What a screen reader says of a tab. @param {SlotState} slot */
export function spokenName(slot) {
  const facts = [slot.id, slot.mode_label, counted(slot.turns, "turn"), counted(slot.tokens, "token")];
  if (origin(slot)) facts.push(origin(slot));
  if (slot.model !== null) facts.push(slot.model);
  if (slot.is_running) facts.push("running");
  return facts.join(", ");
}

/**
 * Draw the tabs into `root`, replacing what it drew there before; the focused tab keeps its focus.
 * `onSwitch(id)` is called for a tab that is chosen and isn't current.
 * @param {HTMLElement} root @param {SessionState} state
 * @param {{onSwitch?: (id: string) => void, notice?: string}} [options]
 */
export function slotTabs(root, state, { onSwitch = () => {}, notice = "" } = {}) {
  const document = root.ownerDocument;
  /** @param {string} tag @param {string} name @param {string} [text] */
  const make = (tag, name, text = "") => {
    const node = document.createElement(tag);
    node.className = `am-tabs__${name}`;
    node.textContent = text;
    return node;
  };

  const active = root.contains(document.activeElement) ? document.activeElement : null;
  const focused = active?.closest(".am-tabs__tab")?.getAttribute("data-slot") ?? null;
  const list = make("div", "list");
  list.setAttribute("role", "tablist");
  list.setAttribute("aria-label", `Slots of ${state.title}`);

  const slots = state.slots ?? [];
  const tabs = slots.map((slot) => {
    const tab = make("button", "tab");
    tab.setAttribute("type", "button");
    tab.setAttribute("role", "tab");
    tab.setAttribute("data-slot", slot.id);
    tab.setAttribute("aria-selected", String(slot.is_current));
    tab.setAttribute("aria-label", spokenName(slot));
    tab.setAttribute("tabindex", slot.is_current ? "0" : "-1");
    const name = make("span", "name");
    if (slot.depth > 0) name.append(make("span", "branch", "↳ ".padStart(slot.depth + 1, "·")));
    name.append(make("span", "id", slot.id));
    if (slot.mode !== "full") name.append(make("span", "mode", slot.mode_label));
    if (slot.is_running) name.append(make("span", "mode", "running"));
    tab.append(name, make("span", "facts", `${counted(slot.turns, "turn")} · ${counted(slot.tokens, "token")}`));
    const notes = [origin(slot), slot.model ?? ""].filter(Boolean).join(" · ");
    if (notes) tab.append(make("span", "from", notes));
    tab.addEventListener("click", () => {
      if (!slot.is_current) onSwitch(slot.id);
    });
    return tab;
  });
  list.append(...tabs);

  list.addEventListener("keydown", (event) => {
    const at = tabs.findIndex((tab) => tab === document.activeElement);
    if (at < 0) return;
    let next = at;
    if (event.key in STEPS) next = (at + STEPS[event.key] + tabs.length) % tabs.length;
    else if (event.key === "Home") next = 0;
    else if (event.key === "End") next = tabs.length - 1;
    else return;
    event.preventDefault();
    event.stopPropagation();
    tabs[at].setAttribute("tabindex", "-1");
    tabs[next].setAttribute("tabindex", "0");
    tabs[next].focus();
  });

  const said = make("p", "notice", notice);
  said.setAttribute("role", "status");
  const style = document.createElement("style");
  style.textContent = STYLE;
  const head = `${state.title} · ${state.model}${state.is_readonly ? " · read-only" : ""}`;
  const box = make("div", "box");
  box.className = "am-tabs";
  box.append(make("p", "head", head), list, said);
  root.style.setProperty("container-type", "inline-size");
  root.replaceChildren(style, box);
  if (focused !== null) tabs.find((tab) => tab.getAttribute("data-slot") === focused)?.focus();
}
