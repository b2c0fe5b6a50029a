// Ledger explorer: every event of a session in a grid, filtered, and each opened to its content.
// Draws what agent_magics/notebook/views/ledger/ledger_view.py answers.

import { makerOf, mount } from "./elements.js";
import { EventGrid } from "./event_grid.js";
import { STYLE as GRID_STYLE } from "./grid_style.js";
import { OpenedEvent } from "./ledger_event.js";
import { LedgerFilters } from "./ledger_filters.js";
import { STYLE } from "./ledger_style.js";
import { counted, grouped } from "./words.js";

/** @import { Filter } from "./event_grid.js" */

/**
 * @typedef {{title: string, total: number, slots: string[], kinds: string[]}} LedgerState
 * @typedef {{ask: (message: object) => Promise<any>, begins?: Partial<Filter>, state: LedgerState,
 *   chosen?: (filter: Filter) => void}} Options
 * @typedef {{update: (state: LedgerState) => void}} Explorer
 * @typedef {(root: HTMLElement, options: Options) => Explorer} View
 */

/** Say how many events are shown. @param {number | null} total @param {number} every @param {boolean} isAll */
export function saidCount(total, every, isAll) {
  if (total === null) return "waiting for the kernel…";
  const events = counted(every, "event");
  if (isAll) return events;
  return total === 0 ? `no event matches, of ${grouped(every)}` : `${grouped(total)} of ${events}`;
}

/**
 * Draw an explorer into `root`; it stays there and keeps what a person chose. `update(state)` tells of
 * a ledger that grew.
 * @type {View}
 */
export const ledgerExplorer = (root, options) => new LedgerExplorer(root, options);

/** The filters, the grid and the opened event of one explorer. */
class LedgerExplorer {
  /** @param {HTMLElement} root @param {Options} options */
  constructor(root, { ask, begins = {}, state, chosen = () => {} }) {
    const make = makerOf(root.ownerDocument, "am-ledger");
    this.state = state;
    this.head = make("p", "head");
    this.filters = new LedgerFilters(make, begins, (filter) => {
      chosen(filter);
      this.grid.filter(filter);
    });
    this.count = make("p", "count");
    this.count.setAttribute("role", "status");
    this.opened = new OpenedEvent({
      make,
      ask,
      closed: () => this.grid.focus(),
      only: (slot, turn) => {
        this.filters.only(slot, turn);
        this.grid.focus();
      },
    });
    this.grid = new EventGrid(root.ownerDocument, {
      ask,
      open: ([seq]) => this.opened.open(seq, false),
      escape: () => this.opened.close(),
      counted: (total) => this.showCount(total),
    });
    const box = make("div", "box");
    box.className = "am-ledger";
    const { head, filters, count, grid, opened } = this;
    box.append(head, filters.node, count, grid.node, opened.node, opened.spoken);
    root.style.setProperty("container-type", "inline-size");
    mount(root, STYLE + GRID_STYLE, box);
    this.begin();
  }

  begin() {
    const { filter } = this.filters;
    const { title, slots, kinds } = this.state;
    this.filters.offer([...slots, filter.slot ?? ""], [...kinds, filter.kinds.join(",")]);
    this.filters.show();
    this.head.textContent = `ledger of ${title}`;
    this.grid.filter(filter);
  }

  /** @param {LedgerState} state */
  update(state) {
    this.state = state;
    this.head.textContent = `ledger of ${state.title}`;
    this.filters.offer(state.slots, state.kinds);
    this.grid.grow(this.filters.isAll ? state.total : null);
  }

  /** @param {number | null} total */
  showCount(total) {
    const every = Math.max(this.state.total, total ?? 0);
    this.count.textContent = saidCount(total, every, this.filters.isAll);
  }
}
