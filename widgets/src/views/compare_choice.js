// A choice in a comparison: a labelled list, whose answers by the kernel may be on their way.

import { optionOf } from "./elements.js";

/**
 * @import { Choice } from "./compare_words.js"
 * @import { Make } from "./elements.js"
 */

/** A list to choose from; `choose(value)` is called for what a person chooses. */
export class ChoiceField {
  /** @param {Make} make @param {string} name @param {(value: string) => void} choose */
  constructor(make, name, choose) {
    this.make = make;
    this.node = make("label", "label");
    this.field = make("select", "field");
    this.drawn = "";
    /** What was chosen and the kernel hasn't answered yet. @type {string[]} */
    this.sent = [];
    /** What the kernel's last state said. */
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
}
