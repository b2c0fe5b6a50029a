// Live ledgers: the explorers of one session, each in the output that it was made for, for as long as
// the kernel answers. Stands between ledger_explorer.js and live.js in what anywidget loads
// (notebook/views/ledger/ledger_view.py). An output names its explorer by a class; what it began with is in the
// model's state, what it shows is asked for by messages that carry an id. What a person chose since
// stays in the browser's tab, for when the page is loaded anew.

const EXPLORER = "am-ledger--";
const FIRST = "1"; // the number of the explorer that a widget made for one begins with
const ASK_ANEW_MS = 10_000; // a message may be lost while a page connects again

/** @param {Element} output */
const numberOf = (output) =>
  output.className.split(" ").find((each) => each.startsWith(EXPLORER))?.slice(EXPLORER.length);

/** Find what was chosen in an explorer before the page was loaded anew. @param {string} name */
function chosenBefore(name) {
  try {
    return JSON.parse(sessionStorage.getItem(name));
  } catch {
    return null; // a page that may keep nothing
  }
}

/** @param {string} name @param {object} filter */
function keepChosen(name, filter) {
  try {
    sessionStorage.setItem(name, JSON.stringify(filter));
  } catch {
    // as above
  }
}

/**
 * Make a widget that draws every explorer with `view`: in its outputs, and its first one in a layout
 * of ipywidgets wherever that places it.
 * @param {typeof ledgerExplorer} view
 */
export const liveLedger = (view) => () => {
  const placed = new Set();
  let explorerIn = (_root, _number) => {};

  /** @param {{model: any}} context */
  function initialize({ model }) {
    const page = Math.random().toString(36).slice(2);
    const waiting = new Map(); // id: what is done with the answer
    let asked = 0;
    let explorers = []; // {number, root, explorer, state}

    const ask = (message) =>
      new Promise((resolve) => {
        asked += 1;
        const id = `${page}-${asked}`;
        const send = () => model.send({ ...message, id });
        const timer = setInterval(send, ASK_ANEW_MS);
        waiting.set(id, { resolve, timer });
        send();
      });

    const told = (message) => {
      const found = waiting.get(message.id);
      if (found === undefined) return;
      waiting.delete(message.id);
      clearInterval(found.timer);
      found.resolve(message);
    };

    explorerIn = (root, number) => {
      const state = model.get("state");
      const name = `${model.get("anchor")} ${EXPLORER}${number}`;
      const begins = chosenBefore(name) ?? state.queries[number] ?? {};
      const explorer = view(root, { ask, begins, state, chosen: (filter) => keepChosen(name, filter) });
      return { number, root, explorer, state };
    };

    const explorerOf = (output, number) => {
      const there = explorers.find(({ root }) => root.parentElement === output);
      if (there !== undefined) return there;
      // The output was rendered anew: what stood in it goes on.
      const lost = explorers.find((each) => each.number === number && !each.root.isConnected);
      drawnIn(output)?.remove();
      if (lost !== undefined) {
        rootIn(output, lost.root);
        return lost;
      }
      const found = explorerIn(rootIn(output), number);
      explorers.push(found);
      return found;
    };

    const update = (found) => {
      if (found.state === model.get("state")) return;
      found.state = model.get("state");
      found.explorer.update(found.state);
    };

    const see = (output) => {
      const number = numberOf(output);
      if (number === undefined) return;
      update(explorerOf(output, number));
    };

    const changed = () => {
      following.look();
      placed.forEach(update);
    };
    const leave = () => {
      model.off("change:state", changed);
      model.off("msg:custom", told);
      for (const { timer } of waiting.values()) clearInterval(timer);
      explorers = [];
    };
    const following = follow(model, see, leave);
    model.on("change:state", changed);
    model.on("msg:custom", told);
    return following.end;
  }

  /** @param {{el: HTMLElement}} context */
  function render({ el }) {
    const root = document.createElement("div");
    root.className = DRAWN;
    el.append(root);
    const found = explorerIn(root, FIRST);
    placed.add(found);
    return () => placed.delete(found);
  }
  return { initialize, render };
};
