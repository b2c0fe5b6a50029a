// The state of a turn: what stands in its place, as agent_magics/notebook/views/turn/turn_state.py tells it.

/**
 * @typedef {{used: number, window: number, threshold: number}} Share
 * @typedef {{phase: string, about: string, waited_s: number, hint: string, context: Share | null,
 *   last: string}} Status
 * @typedef {{id: number, kind: "text" | "reasoning" | "note", text: string}} TextItem
 * @typedef {{id: number, kind: "call", line: string, phase: string, said: string,
 *   arguments: [string, string][], result: string, cut: number}} CallItem
 * @typedef {{id: number, kind: "question", head: string, preview: string, does: string,
 *   edits: string | null, notice: string}} QuestionItem
 * @typedef {TextItem | CallItem | QuestionItem} Item
 * @typedef {{items: Map<number, Item>, status: Status | null}} Place
 */

/**
 * Of an item that is there the end of its text is told: how much of it is cut off, and what is added.
 * @typedef {{id: number, kind?: undefined, cut?: number, add: string}} Growth
 * @typedef {{whole?: boolean, items?: (Item | Growth | {id: number, kind: "gone"})[],
 *   status?: Status | null}} PlaceChange
 */

/**
 * Take in what has changed; places that nothing was said of stay the same objects.
 * @param {Map<string, Place>} places @param {Record<string, PlaceChange>} changes
 */
export function withChanges(places, changes) {
  const next = new Map(places);
  for (const [name, change] of Object.entries(changes)) {
    next.set(name, withChange(change.whole ? undefined : places.get(name), change));
  }
  return next;
}

/** @param {Place | undefined} before @param {PlaceChange} change @returns {Place} */
function withChange(before, change) {
  const items = new Map(before?.items);
  for (const item of change.items ?? []) {
    if (item.kind === "gone") items.delete(item.id);
    else if (item.kind !== undefined) items.set(item.id, item);
    else items.set(item.id, extended(/** @type {TextItem} */ (items.get(item.id)), item));
  }
  const status = change.status === undefined ? (before?.status ?? null) : change.status;
  return { items, status };
}

/** @param {TextItem} item @param {Growth} growth @returns {TextItem} */
const extended = (item, { cut = 0, add }) => ({
  ...item,
  text: item.text.slice(0, item.text.length - cut) + add,
});
