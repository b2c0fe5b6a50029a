// A column of a comparison: what one slot answered, and what of it differs from the base's answer.

import { spokenAlike, spokenByLines, spokenPlaces } from "./compare_words.js";
import { readable } from "./elements.js";

/**
 * @import { Column, Piece } from "./compare_words.js"
 * @import { Make } from "./elements.js"
 */

/** Draws the answer of one slot, again when it changed. */
export class AnswerColumn {
  /** @param {Make} make @param {string} slot */
  constructor(make, slot) {
    this.make = make;
    /** @type {Column | null} */
    this.drawn = null;
    this.base = "";
    this.node = make("section", "column");
    this.node.setAttribute("aria-label", `Answer in ${slot}`);
    const head = make("div", "head");
    this.alike = make("span", "alike");
    this.facts = make("div", "facts");
    head.append(make("span", "slot", slot), this.alike, this.facts);
    this.text = readable(make("div", "text"), `What ${slot} answered`);
    this.places = make("div", "places");
    this.places.hidden = true; // a description is told all the same
    const id = `am-compare-${Math.random().toString(36).slice(2)}`;
    this.places.setAttribute("id", id);
    this.text.setAttribute("aria-describedby", id);
    this.node.append(head, this.text, this.places);
  }

  /** @param {Column} column @param {string} base @param {boolean} marks */
  draw(column, base, marks) {
    if (this.drawn === column && this.base === base) return;
    [this.drawn, this.base] = [column, base];
    const isBase = column.id === base;
    this.node.className = `am-compare__column${isBase ? " am-compare__column--base" : ""}`;
    const share = column.alike === null ? "" : spokenAlike(column.alike, base);
    this.alike.textContent = column.by_lines ? spokenByLines(base) : share;
    const facts = [column.turn === null ? "" : `turn ${column.turn}`, column.facts];
    if (column.status !== "complete") facts.unshift(column.status);
    this.facts.textContent = facts.filter((fact) => fact !== "").join(" · ");
    const was = this.text.scrollTop;
    this.text.replaceChildren(...column.pieces.map((piece) => this.pieceOf(piece)));
    this.text.hidden = column.status === "not asked";
    this.text.scrollTop = was;
    this.describe(marks);
  }

  /** Tell those who hear the answer where it differs, while that is marked. @param {boolean} marks */
  describe(marks) {
    this.places.textContent = marks && this.drawn !== null ? spokenPlaces(this.drawn.pieces) : "";
  }

  /** @param {Piece} piece */
  pieceOf({ text, differs }) {
    return this.make(differs ? "mark" : "span", differs ? "differs" : "same", text);
  }
}
