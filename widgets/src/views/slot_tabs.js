// Slot tabs: the branches of a session as a tree, the way to each, and what can be done to it.
// Draws the session state (agent_magics/notebook/views/session_state.py).

import { keepKeysIn, makerOf, mount } from "./elements.js";
import {
  FormRow,
  actionButton,
  deleteForm,
  deriveForm,
  modeForm,
  renameForm,
} from "./slot_form.js";
import { STYLE } from "./slot_style.js";
import { SlotTree } from "./slot_tree.js";

/**
 * @import { Message } from "./slot_form.js"
 * @import { SlotState } from "./slot_tree.js"
 */

/**
 * @typedef {{title: string, model: string, is_readonly: boolean, current: string,
 *   slots: SlotState[]}} SessionState
 * @typedef {{number?: number, text?: string, is_refused?: boolean, undo?: string | null}} Notice
 */

/** What was drawn into a root. @type {WeakMap<HTMLElement, SlotTabs>} */
const DRAWN = new WeakMap();

/** The tabs in one root: made once, so that focus, typing and the live region outlast each change. */
class SlotTabs {
  /** @param {HTMLElement} root */
  constructor(root) {
    const make = makerOf(root.ownerDocument, "am-tabs");
    this.make = make;
    /** @type {(message: object) => void} */
    this.send = () => {};
    /** The number of the notice that was said last. */
    this.said = 0;
    /** The slot that becomes active as soon as it is there. @type {string | null} */
    this.awaited = null;
    /** @type {string | null} */
    this.undoes = null;
    this.head = make("p", "head");
    this.on = make("span", "on");
    this.bar = this.newBar();
    this.form = new FormRow(
      make,
      (message) => this.sendForm(message),
      () => this.focusActive(),
    );
    this.tree = new SlotTree(make, {
      activated: (slot) => this.nameActive(slot),
      switchTo: (slot) => this.send({ kind: "switch", slot }),
      rename: () => this.openRename(),
      remove: () => this.openDelete(),
      canChange: () => !this.bar.hidden,
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
      actionButton(make, "Delete…", () => this.openDelete()),
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
    else if ((tree.current !== before && isIdle) || !this.has(tree.active)) {
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
    if (message.name !== undefined) this.awaited = message.name;
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
}

/**
 * Draw the tabs into `root`, or bring what it drew there up to date. `send(message)` is called for
 * what a person does; `notice` is the sentence that came of it.
 * @param {HTMLElement} root @param {SessionState} state
 * @param {{send?: (message: object) => void, notice?: Notice}} [options]
 */
export function slotTabs(root, state, { send = () => {}, notice = {} } = {}) {
  const tabs = DRAWN.get(root) ?? new SlotTabs(root);
  DRAWN.set(root, tabs);
  tabs.update(state, notice, send);
}
