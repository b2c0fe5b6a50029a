// A DOM of the few members that the views use. Setting HTML is an error, so no test can miss it.

class Node {
  constructor(document, tag) {
    this.ownerDocument = document;
    this.tag = tag;
    this.className = "";
    this.children = [];
    this.attributes = new Map();
    this.listeners = new Map();
    this.text = "";
    this.hidden = this.disabled = false;
    const values = new Map();
    this.style = { values, setProperty: (name, value) => values.set(name, value) };
  }
  set innerHTML(_) {
    throw new Error("HTML was set");
  }
  set outerHTML(_) {
    throw new Error("HTML was set");
  }
  insertAdjacentHTML() {
    throw new Error("HTML was set");
  }
  set textContent(text) {
    this.children = [];
    this.text = String(text);
  }
  get textContent() {
    return this.text + this.children.map((child) => child.textContent).join("");
  }
  append(...nodes) {
    for (const node of nodes) {
      node.remove();
      node.parent = this;
    }
    this.children.push(...nodes);
  }
  remove() {
    if (this.parent) this.parent.children = this.parent.children.filter((child) => child !== this);
    this.parent = undefined;
  }
  replaceChildren(...nodes) {
    for (const child of this.children) child.parent = undefined;
    this.children = [];
    this.append(...nodes);
  }
  get parentElement() {
    return this.parent ?? null;
  }
  get isConnected() {
    return this === globalThis.document?.body || (this.parent?.isConnected ?? false);
  }
  getBoundingClientRect() {
    return { top: 0, bottom: 0 };
  }
  setAttribute(name, value) {
    this.attributes.set(name, String(value));
  }
  getAttribute(name) {
    return this.attributes.get(name) ?? null;
  }
  addEventListener(kind, listener) {
    this.listeners.set(kind, listener);
  }
  fire(kind, event = {}) {
    this.listeners.get(kind)?.({ preventDefault() {}, stopPropagation() {}, ...event });
  }
  focus() {
    this.ownerDocument.activeElement = this;
  }
  contains(node) {
    return node === this || this.children.some((child) => child.contains(node));
  }
  closest(selector) {
    const wanted = selector.slice(1);
    return this.className.split(" ").includes(wanted)
      ? this
      : (this.parent?.closest(selector) ?? null);
  }
  querySelectorAll(tag) {
    return this.children.flatMap((child) => [
      ...(child.tag === tag ? [child] : []),
      ...child.querySelectorAll(tag),
    ]);
  }
  all(name) {
    const here = this.className.split(" ").includes(name) ? [this] : [];
    return [...here, ...this.children.flatMap((child) => child.all(name))];
  }
}

export function page() {
  const document = { activeElement: null, createElement: (tag) => new Node(document, tag) };
  return document.createElement("main");
}

/** Put outputs into the one page that a live view finds them in; `mutated()` tells who observes. */
export function inPage(...outputs) {
  const body = page();
  const observers = new Set();
  body.mutated = () => [...observers].forEach((observer) => observer());
  body.append(...outputs);
  globalThis.document = {
    body,
    createElement: body.ownerDocument.createElement,
    // The browser's collection is live: it is read anew each time it is walked.
    getElementsByClassName: (name) => ({
      [Symbol.iterator]: () => body.all(name)[Symbol.iterator](),
    }),
  };
  globalThis.MutationObserver = class {
    constructor(listener) {
      this.listener = listener;
    }
    observe() {
      observers.add(this.listener);
    }
    disconnect() {
      observers.delete(this.listener);
    }
  };
  return body;
}

/** Make an output as it stands in a notebook: static HTML in an element of a class. */
export function outputOf(anchor) {
  const output = page();
  output.className = anchor;
  output.append(output.ownerDocument.createElement("div"));
  return output;
}

export function model(values) {
  const listeners = new Map();
  return {
    sent: [],
    listeners,
    tell: (message) => listeners.get("msg:custom")?.(message),
    widget_manager: { isDisposed: false, kernel: { id: "k1" } },
    fire: (name, message) => listeners.get(name)?.(message),
    get: (name) => values[name],
    set(name, value) {
      values[name] = value;
      listeners.get(`change:${name}`)?.();
    },
    send(message) {
      this.sent.push(message);
    },
    on: (name, listener) => listeners.set(name, listener),
    off: (name) => listeners.delete(name),
  };
}
