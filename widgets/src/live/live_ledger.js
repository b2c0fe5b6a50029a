// Live ledgers: the explorers of one session, each in the output that it was made for, for as long as
// the kernel answers. An output names its explorer by a class; what it began with is in the model's
// state, what it shows is asked for. What a person chose since stays in the browser's tab, for when
// the page is loaded anew.

import { classBehind, drawnIn, followOutputs, placeRoot, replaceStatic } from "./outputs.js";
import { questionsTo } from "./questions.js";

/**
 * @import { Filter } from "../views/event_grid.js"
 * @import { Explorer, LedgerState, View } from "../views/ledger_explorer.js"
 * @import { Model } from "./model.js"
 */

/**
 * @typedef {LedgerState & {queries: Record<string, Partial<Filter>>}} ModelState
 * @typedef {{number: string, root: HTMLElement, explorer: Explorer, state: ModelState}} Drawn
 */

const EXPLORER = "am-ledger--";
const FIRST = "1"; // the number of the explorer that a widget made for one begins with

/** Find what was chosen in an explorer before the page was loaded anew. @param {string} name */
function chosenBefore(name) {
  try {
    return JSON.parse(sessionStorage.getItem(name) ?? "null");
  } catch {
    return null; // a page that may keep nothing
  }
}

/** @param {string} name @param {Filter} filter */
function keepChosen(name, filter) {
  try {
    sessionStorage.setItem(name, JSON.stringify(filter));
  } catch {
    // as above
  }
}

/** The explorers of one model. */
class Explorers {
  /** @param {Model} model @param {View} view */
  constructor(model, view) {
    this.model = model;
    this.view = view;
    this.questions = questionsTo(model);
    /** @type {Drawn[]} */
    this.drawn = [];
    /** @type {Set<Drawn>} */
    this.placed = new Set(); // in layouts
  }

  /** @returns {ModelState} */
  get state() {
    return this.model.get("state");
  }

  /** @param {HTMLElement} root @param {string} number @returns {Drawn} */
  drawIn(root, number) {
    const { state } = this;
    const name = `${this.model.get("anchor")} ${EXPLORER}${number}`;
    const explorer = this.view(root, {
      ask: this.questions.ask,
      begins: chosenBefore(name) ?? state.queries[number] ?? {},
      state,
      chosen: (filter) => keepChosen(name, filter),
    });
    return { number, root, explorer, state };
  }

  /** @param {Element} output */
  see(output) {
    const number = classBehind(output, EXPLORER);
    if (number !== undefined) this.update(this.explorerOf(output, number));
  }

  /** @param {Element} output @param {string} number */
  explorerOf(output, number) {
    const there = this.drawn.find(({ root }) => root.parentElement === output);
    if (there !== undefined) return there;
    // The output was rendered anew: what stood in it goes on.
    const lost = this.drawn.find((each) => each.number === number && !each.root.isConnected);
    drawnIn(output)?.remove();
    if (lost !== undefined) {
      replaceStatic(output, lost.root);
      return lost;
    }
    const found = this.drawIn(replaceStatic(output), number);
    this.drawn.push(found);
    return found;
  }

  /** @param {Drawn} drawn */
  update(drawn) {
    if (drawn.state === this.state) return;
    drawn.state = this.state;
    drawn.explorer.update(drawn.state);
  }

  leave() {
    this.questions.leave();
    this.drawn = [];
  }
}

/**
 * Make a widget that draws every explorer with `view`: in its outputs, and its first one in a layout
 * of ipywidgets wherever that places it.
 * @param {View} view
 */
export const liveLedger = (view) => () => {
  /** @type {Explorers} */
  let explorers;

  /** @param {{model: Model}} context */
  function initialize({ model }) {
    const ours = new Explorers(model, view);
    explorers = ours;
    const changed = () => {
      following.look();
      ours.placed.forEach((drawn) => ours.update(drawn));
    };
    const leave = () => {
      model.off("change:state", changed);
      ours.leave();
    };
    const following = followOutputs(model, (output) => ours.see(output), leave);
    model.on("change:state", changed);
    return following.end;
  }

  /** @param {{el: HTMLElement}} context */
  function render({ el }) {
    const drawn = explorers.drawIn(placeRoot(el), FIRST);
    explorers.placed.add(drawn);
    return () => explorers.placed.delete(drawn);
  }
  return { initialize, render };
};
