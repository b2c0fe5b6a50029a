// Live turns: the places in a notebook that turns grow in, drawn while the kernel tells of them.
//
// One model serves all turns of a kernel. An output names its place by a class. A page that finds one
// asks the kernel for it ("here") and is told the whole place, then only what changes. So a page that
// comes late, a reloaded one say, goes on where the turn is; a kernel that can't answer while it is
// busy is never drawn, and its outputs stay as they are.

import { withChanges } from "../views/turn_state.js";
import { markdownBy } from "./markdown.js";
import { classBehind, drawnIn, followOutputs, replaceStatic, showStatic } from "./outputs.js";

/**
 * @import { Place, PlaceChange } from "../views/turn_state.js"
 * @import { DrawPlace, View } from "../views/turn_view.js"
 * @import { Model } from "./model.js"
 */

/**
 * @typedef {{name: string, root: HTMLElement, draw: DrawPlace | null, drawn: Place | null,
 *   focused: HTMLElement | null}} DrawnPlace
 * @typedef {{kind: "told", n: number, places: Record<string, PlaceChange | null>}} Told
 */

const PLACE = "am-turn--";
const ASK_AGAIN_MS = [250, 500, 1000, 2000, 4000, 8000];
const UNANSWERED_MS = 2500;
const NO_BUTTONS =
  "No buttons here while the cell runs: stop it with the kernel's interrupt button ■.";

/** The places of one model. */
class Places {
  /** @param {Model} model @param {View} view */
  constructor(model, view) {
    this.model = model;
    this.view = view;
    this.markdown = markdownBy(model.widget_manager?.rendermime);
    /** @type {Map<string, Place>} */
    this.known = new Map();
    /** What the kernel knows nothing of. @type {Set<string>} */
    this.unknown = new Set();
    /** What it hasn't told of: when it is asked again. @type {Map<string, ReturnType<typeof setTimeout>>} */
    this.asked = new Map();
    /** @type {Set<string>} */
    this.unanswered = new Set();
    /** Questions that the kernel knows to be seen. @type {Set<string>} */
    this.shown = new Set();
    /** @type {DrawnPlace[]} */
    this.drawn = [];
    /** The number of the newest message. @type {number | null} */
    this.newest = null;
    this.receive = this.receive.bind(this);
    this.following = followOutputs(
      model,
      (output) => this.see(output),
      () => this.leave(),
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
      setTimeout(() => this.ask(name, times + 1), wait),
    );
  }

  /** @param {Element} output */
  see(output) {
    const name = classBehind(output, PLACE);
    if (name === undefined || this.unknown.has(name)) return;
    const place = this.known.get(name);
    if (place === undefined) this.seeUntold(output, name);
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
      send: (message) => this.model.send({ ...message, place: name }),
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
    if (there !== undefined) return there;
    // The output was rendered anew: what stood in it goes on, with its focus.
    const lost = this.drawn.find((each) => each.name === name && !each.root.isConnected);
    const found = lost ?? newPlace(name);
    if (lost === undefined) this.drawn.push(found);
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
    /** @type {Record<string, PlaceChange>} */
    const changes = {};
    for (const [name, change] of Object.entries(places)) {
      if (change === null) this.unknown.add(name);
      else if (change.whole || (this.known.has(name) && !isGap)) changes[name] = change;
    }
    return changes;
  }

  leave() {
    this.model.off("msg:custom", this.receive);
    for (const timer of this.asked.values()) clearTimeout(timer);
  }
}

/** Make a widget that draws every place with `view`. @param {View} view */
export const liveTurns = (view) => ({
  /** @param {{model: Model}} context */
  initialize: ({ model }) => new Places(model, view).following.end,
});

/** @param {Element} output */
function sayUnanswered(output) {
  replaceStatic(output).textContent = NO_BUTTONS;
  showStatic(output, true);
}

/**
 * Make the root of a place. What has the focus in it is remembered until the focus goes elsewhere;
 * being taken out of the page isn't that.
 * @param {string} name @returns {DrawnPlace}
 */
function newPlace(name) {
  const root = document.createElement("div");
  /** @type {DrawnPlace} */
  const place = { name, root, draw: null, drawn: null, focused: null };
  root.addEventListener("focusin", ({ target }) => {
    place.focused = /** @type {HTMLElement} */ (target);
  });
  root.addEventListener("focusout", () =>
    queueMicrotask(() => {
      if (root.isConnected && !root.contains(document.activeElement)) place.focused = null;
    }),
  );
  return place;
}
