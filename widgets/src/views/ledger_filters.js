// The filters of a ledger explorer: which events, by slot, turn, kind and words.

import { keepKeys, optionOf } from "./elements.js";

/**
 * @import { Make } from "./elements.js"
 * @import { Filter } from "./event_grid.js"
 */

const TYPING_MS = 250;
/** @type {Filter} */
const EVERYTHING = { slot: null, turn: null, kinds: [], find: "" };

/** The fields of a filter; `chosen(filter)` is called for what a person chooses in them. */
export class LedgerFilters {
  /**
   * @param {Make} make @param {Partial<Filter>} begins
   * @param {(filter: Filter) => void} chosen
   */
  constructor(make, begins, chosen) {
    this.make = make;
    this.chosen = chosen;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.typing = undefined;
    this.node = make("div", "filters");
    this.node.setAttribute("role", "search");
    this.node.setAttribute("aria-label", "Which events");
    this.slot = this.choice("slot", "every slot");
    this.kind = this.choice("kind", "every kind");
    this.turn = this.field("turn", "number");
    this.turn.setAttribute("min", "1");
    this.find = this.field("find", "search");
    this.find.setAttribute("placeholder", "words");
    this.filter = { ...EVERYTHING, ...begins };
  }

  /** Whether everything is let through. */
  get isAll() {
    const { slot, turn, kinds, find } = this.filter;
    return !slot && turn === null && kinds.length === 0 && !find.trim();
  }

  /** Offer slots and kinds beside those that can be chosen. @param {string[]} slots @param {string[]} kinds */
  offer(slots, kinds) {
    this.addOptions(this.slot, slots);
    this.addOptions(this.kind, kinds);
  }

  /** Show the filter in the fields. */
  show() {
    const { slot, turn, kinds, find } = this.filter;
    this.slot.value = slot ?? "";
    this.kind.value = kinds.join(",");
    this.turn.value = turn === null ? "" : String(turn);
    this.find.value = find;
  }

  /** Choose all events of one turn. @param {string} slot @param {number} turn */
  only(slot, turn) {
    this.offer([slot], []);
    this.filter = { ...EVERYTHING, slot, turn };
    this.show();
    this.choose();
  }

  choose() {
    const turn = Number.parseInt(this.turn.value, 10);
    this.filter = {
      slot: this.slot.value || null,
      turn: turn > 0 ? turn : null,
      kinds: this.kind.value ? this.kind.value.split(",") : [],
      find: this.find.value,
    };
    this.chosen(this.filter);
  }

  /** @param {string} label @param {string} type */
  field(label, type) {
    const input = this.make("input", "field");
    input.setAttribute("type", type);
    input.addEventListener("input", () => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => this.choose(), TYPING_MS);
    });
    return this.labelled(label, input);
  }

  /** @param {string} label @param {string} every */
  choice(label, every) {
    const select = this.make("select", "field");
    select.append(optionOf(this.make, "", every));
    select.addEventListener("change", () => this.choose());
    return this.labelled(label, select);
  }

  /** @template {HTMLElement} Control @param {string} label @param {Control} control */
  labelled(label, control) {
    keepKeys(control);
    const whole = this.make("label", "filter");
    whole.className += ` am-ledger__filter--${label}`;
    whole.append(this.make("span", "name", label), control);
    this.node.append(whole);
    return control;
  }

  /** @param {HTMLSelectElement} select @param {string[]} names */
  addOptions(select, names) {
    const there = new Set([...select.children].map((child) => child.getAttribute("value")));
    const others = names.filter((name) => name && !there.has(name));
    select.append(...others.map((name) => optionOf(this.make, name)));
  }
}
