// Live views: a view of a state, drawn in the outputs that were made for it, and in layouts.

import { drawnIn, followOutputs, placeRoot, replaceStatic } from "./outputs.js";
import { followState } from "./state.js";

/** @import { Model } from "./model.js" */

/**
 * @template State
 * @typedef {(root: HTMLElement, state: State,
 *   options: {notice: any, send: (message: object) => void}) => void} Draw
 */

/**
 * Make a widget of a view: `draw(root, state, {notice, send})` draws it, again at each change. It is
 * drawn in its outputs, and in a layout of ipywidgets wherever that places it.
 * @template State @param {Draw<State>} draw
 */
export const live = (draw) => () => {
  /** @type {Set<HTMLElement>} */
  const placed = new Set();
  /** @type {(root: HTMLElement) => void} */
  let drawIn = () => {};

  /** @param {{model: Model}} context */
  function initialize({ model }) {
    /** @type {WeakMap<HTMLElement, number>} */
    const versions = new WeakMap();
    let version = 0;
    /** @type {ReturnType<typeof followOutputs> | null} */
    let following = null;
    const changed = () => {
      version += 1;
      following?.look();
      placed.forEach(drawIn);
    };
    const state = followState(model, changed);
    drawIn = (root) => {
      if (versions.get(root) === version) return;
      versions.set(root, version);
      draw(root, state.now(), {
        notice: model.get("notice"),
        send: (message) => model.send(message),
      });
    };
    /** @param {Element} output */
    const see = (output) => drawIn(drawnIn(output) ?? replaceStatic(output));
    following = followOutputs(model, see, () => {
      state.leave();
      model.off("change:notice", changed);
    });
    model.on("change:notice", changed);
    return following.end;
  }

  /** @param {{el: HTMLElement}} context */
  function render({ el }) {
    const root = placeRoot(el);
    placed.add(root);
    drawIn(root);
    return () => placed.delete(root);
  }
  return { initialize, render };
};
