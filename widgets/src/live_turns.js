// Live turns: the places in a notebook that turns grow in, drawn while the kernel tells of them.
// Stands between turn_view.js and live.js in what anywidget loads (notebook/views/turn/turn_view.py).
//
// One model serves all turns of a kernel. An output names its place by a class. A page that finds one
// asks the kernel for it ("here") and is told the whole place, then only what changes. So a page that
// comes late, a reloaded one say, goes on where the turn is; a kernel that can't answer while it is
// busy is never drawn, and its outputs stay as they are.

const PLACE = "am-turn--";
const ASK_AGAIN_MS = [250, 500, 1000, 2000, 4000, 8000];
const UNANSWERED_MS = 2500;
const NO_BUTTONS = "No buttons here while the cell runs: stop it with the kernel's interrupt button ■.";
const REST = 4; // times what rendering took, before a text that grows is rendered again

/** @param {Element} output */
const placeOf = (output) => output.className.split(" ").find((each) => each.startsWith(PLACE))?.slice(PLACE.length);

/**
 * Give the front end's own Markdown renderer (JupyterLab's, which sanitises), where it has one.
 * @param {any} rendermime
 */
export function markdownBy(rendermime) {
  if (typeof rendermime?.createRenderer !== "function") return undefined;
  const texts = new WeakMap();
  const render = async (node, text) => {
    text.isBusy = true;
    while (text.shown !== text.wanted) {
      const began = performance.now();
      const next = text.wanted;
      await text.renderer.renderModel(
        rendermime.createModel({ data: { "text/markdown": next }, trusted: false }),
      );
      rendermime.latexTypesetter?.typeset(text.renderer.node);
      text.shown = next;
      const tookMs = performance.now() - began;
      if (text.wanted !== next) await new Promise((resolve) => setTimeout(resolve, REST * tookMs));
    }
    text.isBusy = false;
  };
  return (node, wanted) => {
    let text = texts.get(node);
    if (text === undefined) {
      text = { renderer: rendermime.createRenderer("text/markdown"), shown: "", wanted, isBusy: false };
      texts.set(node, text);
      node.className += " am-turn__text--rendered";
      node.replaceChildren(text.renderer.node);
    }
    text.wanted = wanted;
    if (!text.isBusy) void render(node, text);
  };
}

/** Make a widget that draws every place with `view`. @param {typeof turnView} view */
export function liveTurns(view) {
  /** @param {{model: any}} context */
  function initialize({ model }) {
    const markdown = markdownBy(model.widget_manager?.rendermime);
    const strangers = new Set(); // places that the kernel knows nothing of
    const asked = new Map(); // how often, and the timer, of places that it hasn't told of
    const unanswered = new Set();
    const shown = new Set(); // questions
    let roots = []; // {name, root, draw, drawn, held}
    let places = new Map();
    let heard = null;

    const ask = (name, times = 0) => {
      if (places.has(name) || strangers.has(name)) return;
      model.send({ kind: "here", places: [name] });
      const wait = ASK_AGAIN_MS[Math.min(times, ASK_AGAIN_MS.length - 1)];
      asked.set(name, setTimeout(() => ask(name, times + 1), wait));
    };

    const rootOf = (output, name) => {
      const there = roots.find(({ root }) => root.parentElement === output);
      if (there !== undefined) return there;
      // The output was rendered anew: what stood in it goes on, with its focus.
      const lost = roots.find((each) => each.name === name && !each.root.isConnected);
      const found = lost ?? { name, root: document.createElement("div"), draw: null, drawn: null, held: null };
      if (lost === undefined) {
        roots.push(found);
        holdFocus(found);
      }
      drawnIn(output)?.remove();
      rootIn(output, found.root);
      if (lost?.held?.isConnected && document.activeElement === document.body) {
        lost.held.focus({ preventScroll: true });
      }
      return found;
    };

    const see = (output) => {
      const name = placeOf(output);
      if (name === undefined || strangers.has(name)) return;
      const place = places.get(name);
      if (place === undefined) {
        if (unanswered.has(name) && drawnIn(output) === null) sayUnanswered(output);
        if (asked.has(name)) return;
        ask(name);
        setTimeout(() => {
          unanswered.add(name);
          following.look();
        }, UNANSWERED_MS);
        return;
      }
      const found = rootOf(output, name);
      if (found.drawn === place) return;
      found.drawn = place;
      found.draw ??= view(found.root, { markdown, send: (message) => model.send({ ...message, place: name }) });
      found.draw(place);
      for (const item of place.items.values()) {
        if (item.kind !== "question" || shown.has(`${name} ${item.id}`)) continue;
        shown.add(`${name} ${item.id}`);
        model.send({ kind: "shown", id: item.id, place: name });
      }
    };

    const told = (message) => {
      if (message.kind !== "told") return;
      const isGap = heard !== null && message.n !== heard + 1;
      heard = message.n;
      const known = Object.entries(message.places).filter(([name, change]) => {
        if (change === null) strangers.add(name);
        return change !== null && (change.whole || (places.has(name) && !isGap));
      });
      places = applied(places, Object.fromEntries(known));
      for (const [name] of known) clearTimeout(asked.get(name));
      if (isGap) {
        const running = [...places].filter(([, place]) => place.status?.phase !== "ended");
        model.send({ kind: "here", places: running.map(([name]) => name) });
      }
      following.look();
      roots = roots.filter(({ root }) => root.isConnected);
    };

    const leave = () => {
      model.off("msg:custom", told);
      for (const timer of asked.values()) clearTimeout(timer);
    };
    const following = follow(model, see, leave);
    model.on("msg:custom", told);
    return following.end;
  }
  return { initialize };
}

/** @param {Element} output */
function sayUnanswered(output) {
  rootIn(output).textContent = NO_BUTTONS;
  showStill(output, true);
}

/** Remember what has the focus in a root, until it goes elsewhere; being taken out isn't that. */
function holdFocus(found) {
  const { root } = found;
  root.addEventListener("focusin", (event) => void (found.held = event.target));
  root.addEventListener("focusout", () =>
    queueMicrotask(() => {
      if (root.isConnected && !root.contains(document.activeElement)) found.held = null;
    }),
  );
}
