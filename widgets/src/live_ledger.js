// Live ledgers: the explorers of one session, each in the output that it was made for, for as long as
// the kernel answers. Stands between ledger_explorer.js and live.js in what anywidget loads
// (notebook/ledger_view.py). An output names its explorer by a class; what it began with is in the
// model's state, what it shows is asked for by messages that carry an id.

const EXPLORER = "am-ledger--";
const ASK_ANEW_MS = 10_000; // a message may be lost while a page connects again

/** @param {Element} output */
const numberOf = (output) =>
  output.className.split(" ").find((each) => each.startsWith(EXPLORER))?.slice(EXPLORER.length);

/** Make a widget that draws every explorer with `view`. @param {typeof ledgerExplorer} view */
export function liveLedger(view) {
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

    const explorerIn = (output, number) => {
      const there = explorers.find(({ root }) => root.parentElement === output);
      if (there !== undefined) return there;
      // The output was rendered anew: what stood in it goes on.
      const lost = explorers.find((each) => each.number === number && !each.root.isConnected);
      drawnIn(output)?.remove();
      if (lost !== undefined) {
        rootIn(output, lost.root);
        return lost;
      }
      const [root, state] = [rootIn(output), model.get("state")];
      const explorer = view(root, { ask, begins: state.queries[number] ?? {}, state });
      const found = { number, root, explorer, state };
      explorers.push(found);
      return found;
    };

    const see = (output) => {
      const number = numberOf(output);
      if (number === undefined) return;
      const found = explorerIn(output, number);
      if (found.state === model.get("state")) return;
      found.state = model.get("state");
      found.explorer.update(found.state);
    };

    const changed = () => following.look();
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
  return { initialize };
}
