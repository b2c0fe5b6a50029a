// The state of a live view: what a model holds, brought up to date by numbered deltas.

/** @import { Model } from "./model.js" */

/**
 * A change of a state, as agent_magics/notebook/views/delta.py makes it. Lists are of objects with ids.
 * @typedef {{set?: Record<string, unknown>, in?: Record<string, Delta>, order?: string[]}} Delta
 */

/** Apply a delta to a state; what didn't change is shared. @param {any} state @param {Delta} delta @returns {any} */
export function withDelta(state, delta) {
  const isList = Array.isArray(state);
  const made = new Map(isList ? state.map((one) => [one.id, one]) : Object.entries(state));
  for (const [key, value] of Object.entries(delta.set ?? {})) made.set(key, value);
  for (const [key, within] of Object.entries(delta.in ?? {})) {
    made.set(key, withDelta(made.get(key), within));
  }
  if (!isList) return Object.fromEntries(made);
  return (delta.order ?? state.map((one) => one.id)).map((id) => made.get(id));
}

/**
 * Follow a model's state; where a delta is missing, or some came before the page listened, all of it
 * is asked for.
 * @param {Model} model @param {() => void} changed
 */
export function followState(model, changed) {
  let [state, number] = [model.get("state"), model.get("number") ?? 0];
  const takeWhole = () => {
    if (state === model.get("state") && number === model.get("number")) return;
    [state, number] = [model.get("state"), model.get("number") ?? 0];
    changed();
  };
  /** @param {{kind?: string, number: number, delta: Delta} | undefined} message */
  const takeDelta = (message) => {
    if (message?.kind !== "delta" || message.number <= number) return;
    if (message.number !== number + 1) {
      model.send({ kind: "whole", number });
      return;
    }
    [state, number] = [withDelta(state, message.delta), message.number];
    changed();
  };
  // Whole, the state may be the one that the model began with: then only its number is another.
  model.on("change:state", takeWhole);
  model.on("change:number", takeWhole);
  model.on("msg:custom", takeDelta);
  model.send({ kind: "whole", number });
  const leave = () => {
    model.off("change:state", takeWhole);
    model.off("change:number", takeWhole);
    model.off("msg:custom", takeDelta);
  };
  return { now: () => state, leave };
}
