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
    for (const node of nodes) node.parent = this;
    this.children.push(...nodes);
  }
  replaceChildren(...nodes) {
    this.children = [];
    this.append(...nodes);
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
    return this.className.split(" ").includes(wanted) ? this : (this.parent?.closest(selector) ?? null);
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

export function model(values) {
  const listeners = new Map();
  return {
    sent: [],
    listeners,
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
