// Turn view: what a cell shows while its turn runs. The answer as it grows, private reasoning and
// tool calls folded, a question with its buttons, a stop button, how full the context is.

import { keepKeysIn, makerOf, mount } from "./elements.js";
import { TurnBar } from "./turn_bar.js";
import { noteLine, reasoning, text, toolCall } from "./turn_items.js";
import { question } from "./turn_question.js";
import { STYLE } from "./turn_style.js";

/**
 * @import { Context, Options, Part } from "./turn_items.js"
 * @import { Item, Place } from "./turn_state.js"
 */

/**
 * @typedef {(place: Place) => void} DrawPlace
 * @typedef {(root: HTMLElement, options: Options) => DrawPlace} View
 */

/**
 * Make a turn view in `root`; the result draws a place into it, again at each change. What a person
 * opened stays open, what has the focus keeps it.
 * @type {View}
 */
export function turnView(root, options) {
  const view = new TurnView(root, options);
  return (place) => view.draw(place);
}

/** The items of one turn, and the bar below them. */
class TurnView {
  /** @param {HTMLElement} root @param {Options} options */
  constructor(root, options) {
    this.root = root;
    const make = makerOf(root.ownerDocument, "am-turn");
    /** @type {Context} */
    this.context = { ...options, make };
    /** @type {Map<number, {part: Part, item: Item}>} */
    this.drawn = new Map();
    this.list = make("div", "items");
    this.bar = new TurnBar(this.context);
    const box = make("div", "box");
    box.className = "am-turn";
    keepKeysIn(box);
    box.append(this.list, this.bar.node);
    mount(root, STYLE, box);
  }

  /** @param {Place} place */
  draw(place) {
    let isNews = this.drop(place.items);
    for (const item of place.items.values()) {
      if (this.drawn.get(item.id)?.item === item) continue;
      this.drawItem(item);
      isNews = true;
    }
    this.bar.draw(place.status, isNews);
  }

  /** Take out what is gone, and tell whether anything was. @param {Map<number, Item>} items */
  drop(items) {
    const gone = [...this.drawn].filter(([id]) => !items.has(id));
    for (const [id, { part }] of gone) {
      part.node.remove();
      this.drawn.delete(id);
    }
    return gone.length > 0;
  }

  /** @param {Item} item */
  drawItem(item) {
    const known = this.drawn.get(item.id);
    const part = known?.part ?? partOf(this.context, item);
    this.drawn.set(item.id, { part, item });
    if (known === undefined) this.list.append(part.node);
    part.update(item);
    if (known === undefined && item.kind === "question" && isInSight(this.root)) {
      part.node.scrollIntoView({ block: "nearest" });
    }
  }
}

/** @param {Context} context @param {Item} item @returns {Part} */
function partOf(context, item) {
  switch (item.kind) {
    case "text":
      return text(context);
    case "reasoning":
      return reasoning(context);
    case "note":
      return noteLine(context);
    case "call":
      return toolCall(context);
    case "question":
      return question(context, item);
  }
}

/** Tell whether somebody may be looking at it. @param {Element} root */
function isInSight(root) {
  const { top, bottom } = root.getBoundingClientRect();
  return bottom > 0 && top < globalThis.innerHeight;
}
