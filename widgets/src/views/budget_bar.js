// The bar of a token budget and its legend: what fills the window, what is free, what is kept.

import { grouped, percentOf } from "./words.js";

/** @import { Make } from "./elements.js" */

/**
 * @typedef {{tokens_before: number, tokens_after: number, is_degraded: boolean}} Checkpoint
 * @typedef {{slot: string, model: string, window: number, threshold: number, used: number,
 *   free: number, parts: {name: string, tokens: number}[], notes: string[], spent: string,
 *   frees: number | null, checkpoint: Checkpoint | null}} Budget
 */

/** @type {Record<string, string>} */
const LABELS = {
  dynamic: "what is new",
  tool_results: "tool results",
  user_input: "your message",
  media: "images",
  answer: "answer so far",
};
const OTHER_COLOR = "#7d7d7d";
/**
 * Mid-tones that keep 3:1 against a white and against a near-black page; names stand beside them.
 * @type {Record<string, string>}
 */
const COLORS = {
  system: "#5b7fd4",
  tools: "#8a6fc9",
  skills: "#b55fb0",
  memories: "#c75b7a",
  dynamic: "#3a8bab",
  summary: "#b8762a",
  history: "#2f8f83",
  tool_results: "#5d8a3a",
  user_input: OTHER_COLOR,
  media: "#a8794f",
  answer: "#c2566b",
};

/** @param {string} name */
export const partLabel = (name) => LABELS[name] ?? name;

/** What a screen reader says of the bar. @param {Budget} budget */
export function spokenBudget(budget) {
  const parts = budget.parts.map((part) => `${partLabel(part.name)} ${grouped(part.tokens)}`);
  return [
    `${grouped(budget.used)} of ${grouped(budget.window)} tokens used`,
    `compacts past ${grouped(budget.threshold)}`,
    ...parts,
    ...(budget.frees ? [`a compaction would free about ${grouped(budget.frees)}`] : []),
  ].join(", ");
}

/** Draws one budget: each of its pieces in the bar, with its line in the legend. */
export class BudgetBar {
  /** @param {Make} make @param {Budget} budget */
  constructor(make, budget) {
    this.make = make;
    this.budget = budget;
    this.bar = make("div", "bar");
    this.bar.setAttribute("role", "meter");
    this.bar.setAttribute("aria-label", `Context of ${budget.slot}`);
    this.bar.setAttribute("aria-valuemin", "0");
    this.bar.setAttribute("aria-valuemax", String(budget.window));
    this.bar.setAttribute("aria-valuenow", String(Math.min(budget.used, budget.window)));
    this.bar.setAttribute("aria-valuetext", spokenBudget(budget));
    this.legend = make("ul", "legend");
    for (const part of budget.parts) this.addPart(part);
    this.addUnused();
    this.addThreshold();
    if (budget.frees) this.addFreed(budget.frees);
  }

  /** @param {number} tokens */
  share(tokens) {
    return percentOf(tokens, this.budget.window);
  }

  /** @param {string} name of its class @param {string} title @param {number} tokens */
  addPiece(name, title, tokens) {
    const piece = this.make("span", name);
    piece.style.setProperty("width", this.share(tokens));
    piece.setAttribute("title", title);
    this.bar.append(piece);
    return piece;
  }

  /** @param {HTMLElement} swatch @param {string} label @param {number} tokens */
  addLine(swatch, label, tokens) {
    const line = this.make("li", "item");
    const amount = this.make("span", "tokens", grouped(tokens));
    line.append(swatch, this.make("span", "label", label), amount);
    this.legend.append(line);
  }

  /** @param {string} name */
  swatchOf(name) {
    const swatch = this.make("span", "swatch");
    swatch.className += ` am-budget__swatch--${name}`;
    return swatch;
  }

  /** @param {{name: string, tokens: number}} part */
  addPart({ name, tokens }) {
    const label = partLabel(name);
    const piece = this.addPiece("part", `${label}: ${grouped(tokens)} tokens`, tokens);
    const swatch = this.make("span", "swatch");
    for (const node of [piece, swatch]) {
      node.style.setProperty("background-color", COLORS[name] ?? OTHER_COLOR);
      if (name === "answer") node.className += ` ${node.className}--answer`;
    }
    this.addLine(swatch, label, tokens);
  }

  /** What is free ends at the threshold; behind it stands what is kept for the answer. */
  addUnused() {
    const { window, threshold, used, free } = this.budget;
    const kept = Math.max(0, window - Math.max(threshold, used));
    const reserve = used > threshold ? "left of the reserve" : "reserve";
    this.addRest("free", "free before the threshold", free);
    this.addRest("reserve", reserve, kept);
  }

  /** @param {string} name @param {string} label @param {number} tokens */
  addRest(name, label, tokens) {
    this.addPiece(name, `${label}: ${grouped(tokens)} tokens`, tokens);
    this.addLine(this.swatchOf(name), label, tokens);
  }

  addThreshold() {
    const { threshold } = this.budget;
    const mark = this.make("span", "mark");
    mark.style.setProperty("left", this.share(threshold));
    mark.setAttribute("title", `compacts past ${grouped(threshold)} tokens`);
    this.bar.append(mark);
  }

  /**
   * Mark what a compaction would free, up to what is used: there the part lies that is summarised.
   * @param {number} tokens
   */
  addFreed(tokens) {
    const { used } = this.budget;
    const title = `a compaction now would free about ${grouped(tokens)} tokens`;
    const strip = this.addPiece("frees", title, Math.min(tokens, used));
    strip.style.setProperty("left", this.share(Math.max(0, used - tokens)));
    this.addLine(this.swatchOf("frees"), "a compaction would free about", tokens);
  }
}
