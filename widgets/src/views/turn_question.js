// The question of a turn: what a tool is about to do, and the buttons that let it, change it or not.

import { buttonOf, readable } from "./elements.js";
import { NOT_HEARD, NOT_HEARD_S } from "./turn_bar.js";

/**
 * @import { QuestionItem } from "./turn_state.js"
 * @import { Context, Part } from "./turn_items.js"
 */

const MOST_ROWS = 20;

/** @param {Context} context @param {QuestionItem} item @returns {Part} */
export const question = (context, item) => new Question(context, item);

/** One question; it is asked as long as it stands there. */
class Question {
  /** @param {Context} context @param {QuestionItem} item */
  constructor({ make, send }, item) {
    this.make = make;
    this.send = send;
    this.item = item;
    /** @type {HTMLButtonElement[]} */
    this.buttons = [];
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.waiting = undefined;
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
      event.preventDefault(); // JupyterLab lets no Enter begin a line in a cell's output
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
      if (event.isComposing || (event.key !== "Enter" && event.key !== "Escape")) return;
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
    this.waiting = setTimeout(() => this.say(NOT_HEARD), NOT_HEARD_S * 1000);
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
}
