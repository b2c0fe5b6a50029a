// Live views: a view drawn in the outputs that were made for it, for as long as its kernel answers.
// Stands after a view's source in what anywidget loads (`module_of` in
// agent_magics/notebook/views/front_end.py).
//
// An output holds static HTML in an element with the model's class, and no widget: where the kernel
// is gone (reopened, restarted, GitHub) that HTML is simply what is seen, while JupyterLab would
// prefer a widget to it and then not find its model. So nothing is displayed by the widget; its
// model, made by the comm alone, looks for its outputs in the page and draws beside the static HTML.

// MathJax looks for formulas in whole outputs: what stands in a view is text, and its nodes are kept.
const DRAWN = "agent-magics-drawn mathjax_ignore";

/** @param {Element} output */
const drawnIn = (output) => [...output.children].find((child) => child.className === DRAWN) ?? null;

/** Show an output's static HTML, or hide it. @param {Element} output @param {boolean} shows */
function showStill(output, shows) {
  for (const child of output.children) {
    if (child.className !== DRAWN) child.style.setProperty("display", shows ? "" : "none");
  }
}

/**
 * Name the kernel that answers for a model, where its manager tells (JupyterLab's does): none when
 * the notebook was closed, which ends no model, or the kernel was shut down; another one after that.
 * @param {any} model
 */
function kernelOf(model) {
  const manager = model.widget_manager;
  return manager?.isDisposed ? undefined : manager?.kernel?.id;
}

/**
 * Find a model's outputs for as long as its kernel answers: `see(output)` is called for each of them
 * again and again, whenever the page changes. They may come, go and come back (JupyterLab takes cells
 * out of the page that are out of sight), so none is held on to. At the end the static HTML is shown.
 * @param {any} model @param {(output: Element) => void} see @param {() => void} leave
 */
function follow(model, see, leave) {
  const outputs = document.getElementsByClassName(model.get("anchor"));
  const kernel = kernelOf(model);
  let isOver = false;
  const look = () => {
    if (isOver) return;
    if (kernelOf(model) !== kernel) {
      end();
      return;
    }
    for (const output of outputs) see(output);
  };
  const page = new MutationObserver(look);
  const end = () => {
    isOver = true;
    page.disconnect();
    model.off("comm_live_update", end);
    leave();
    for (const output of outputs) {
      drawnIn(output)?.remove();
      showStill(output, true);
    }
  };
  model.on("comm_live_update", end); // JupyterLab: the kernel restarts
  page.observe(document.body, { childList: true, subtree: true });
  look();
  return { look, end };
}

/**
 * Let a dashboard's folds, which stand around an output, have their keys: to JupyterLab x on one means
 * "cut the cell". It leaves out of notebooks that it doesn't trust what the HTML says of that itself.
 * @param {Element} output
 */
function keepFoldsKeys(output) {
  const folds = output.closest(".am-dashboard")?.querySelectorAll("summary") ?? [];
  for (const fold of folds) fold.setAttribute("data-lm-suppress-shortcuts", "true");
}

/** Put a root for a live view into an output, behind its static HTML. @param {Element} output */
function rootIn(output, root = document.createElement("div")) {
  root.className = DRAWN;
  output.append(root);
  keepFoldsKeys(output);
  showStill(output, false);
  return root;
}

/**
 * Apply a delta (agent_magics/notebook/views/delta.py) to a state; what didn't change is shared.
 * @param {any} state @param {{set?: object, in?: object, order?: string[]}} delta
 */
export function withDelta(state, delta) {
  const isList = Array.isArray(state);
  const made = new Map(isList ? state.map((one) => [one.id, one]) : Object.entries(state));
  for (const [key, value] of Object.entries(delta.set ?? {})) made.set(key, value);
  for (const [key, within] of Object.entries(delta.in ?? {})) made.set(key, withDelta(made.get(key), within));
  if (!isList) return Object.fromEntries(made);
  return (delta.order ?? state.map((one) => one.id)).map((id) => made.get(id));
}

/**
 * Hold a model's state, brought up to date by numbered deltas; where one is missing, or some came
 * before the page listened, all of it is asked for.
 * @param {any} model @param {() => void} changed
 */
function heldState(model, changed) {
  let [state, number] = [model.get("state"), model.get("number") ?? 0];
  const whole = () => {
    if (state === model.get("state") && number === model.get("number")) return;
    [state, number] = [model.get("state"), model.get("number") ?? 0];
    changed();
  };
  const told = (message) => {
    if (message?.kind !== "delta" || message.number <= number) return;
    if (message.number !== number + 1) {
      model.send({ kind: "whole", number });
      return;
    }
    [state, number] = [withDelta(state, message.delta), message.number];
    changed();
  };
  // Whole, the state may be the one that the model began with: then only its number is another.
  model.on("change:state", whole);
  model.on("change:number", whole);
  model.on("msg:custom", told);
  model.send({ kind: "whole", number });
  const leave = () => {
    model.off("change:state", whole);
    model.off("change:number", whole);
    model.off("msg:custom", told);
  };
  return { now: () => state, leave };
}

/**
 * Make a widget of a view: `draw(root, state, {notice, send})` draws it, again at each change. It is
 * drawn in its outputs, and in a layout of ipywidgets wherever that places it.
 * @param {(root: HTMLElement, state: any, options: object) => void} draw
 */
export const live = (draw) => () => {
  const placed = new Set();
  let drawIn = (_root) => {};

  /** @param {{model: any}} context */
  function initialize({ model }) {
    const versions = new WeakMap();
    let version = 0;
    drawIn = (root) => {
      if (versions.get(root) === version) return;
      versions.set(root, version);
      draw(root, state.now(), { notice: model.get("notice"), send: (message) => model.send(message) });
    };
    const see = (output) => drawIn(drawnIn(output) ?? rootIn(output));
    const changed = () => {
      version += 1;
      following?.look();
      placed.forEach(drawIn);
    };
    const leave = () => {
      state.leave();
      model.off("change:notice", changed);
    };
    let following = null;
    const state = heldState(model, changed);
    following = follow(model, see, leave);
    model.on("change:notice", changed);
    return following.end;
  }

  /** @param {{el: HTMLElement}} context */
  function render({ el }) {
    const root = document.createElement("div");
    root.className = DRAWN;
    el.append(root);
    placed.add(root);
    drawIn(root);
    return () => placed.delete(root);
  }
  return { initialize, render };
};
