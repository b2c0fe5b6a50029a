// The form of an action on a slot: a row of fields that asks for what the action needs.

import { buttonOf, consume, optionOf } from "./elements.js";

/**
 * @import { Make } from "./elements.js"
 * @import { SlotState } from "./slot_tree.js"
 */

/**
 * What goes out is a message of agent_magics/notebook/views/slots/slot_actions.py; null: not to be sent yet.
 * @typedef {{kind: string, slot: string | null, name?: string, mode?: string, count?: number}} Message
 * @typedef {{slot: string | null, label: string, button: string,
 *   fields: (HTMLInputElement | HTMLSelectElement)[], message: () => Message | null}} Form
 */

const MODES = ["full", "focused", "readonly"];

/**
 * Make a button that Enter presses too: JupyterLab takes it in command mode, and no click comes of it.
 * @param {Make} make @param {string} label @param {() => void} press
 */
export function actionButton(make, label, press) {
  const button = buttonOf(make, label, press);
  button.addEventListener("keydown", (event) => event.key === "Enter" && consume(event, press));
  return button;
}

/** Shows one form at a time; Enter sends it, Escape leaves it. */
export class FormRow {
  /** @param {Make} make @param {(message: Message) => void} send @param {() => void} left */
  constructor(make, send, left) {
    this.make = make;
    this.send = send;
    this.left = left;
    /** @type {Form | null} */
    this.opened = null;
    /** The form that was sent last, until it is answered. @type {Form | null} */
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
}

/** @param {Make} make @param {string | null} slot @returns {Form} */
export function deriveForm(make, slot) {
  const label = `New slot from ${slot}, named`;
  return nameForm(make, "derive", slot, "", {
    label,
    button: "Derive",
    field: "Name of the new slot",
  });
}

/** @param {Make} make @param {string | null} slot @returns {Form} */
export function renameForm(make, slot) {
  const [label, field] = [`Rename ${slot} to`, `New name of ${slot}`];
  return nameForm(make, "rename", slot, slot ?? "", { label, button: "Rename", field });
}

/**
 * @param {Make} make @param {string} kind @param {string | null} slot @param {string} value
 * @param {{label: string, button: string, field: string}} words @returns {Form}
 */
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

/** @param {Make} make @param {string | null} slot @param {SlotState | undefined} state @returns {Form} */
export function modeForm(make, slot, state) {
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

/** @param {string | null} slot @returns {Form} */
export const deleteForm = (slot) => ({
  slot,
  label: `Delete ${slot}? Its log is kept.`,
  button: "Delete",
  fields: [],
  message: () => ({ kind: "delete", slot }),
});
