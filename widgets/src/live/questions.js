// Questions to the kernel: messages that carry an id, and the answers that come back with it.

/** @import { Model } from "./model.js" */

const ASK_ANEW_MS = 10_000; // a message may be lost while a page connects again

/** Ask a model's kernel; `leave()` waits for no answer any more. @param {Model} model */
export function questionsTo(model) {
  const page = Math.random().toString(36).slice(2);
  /** @type {Map<string, {resolve: (answer: any) => void, timer: ReturnType<typeof setInterval>}>} */
  const waiting = new Map();
  let asked = 0;

  /** @param {object} message @returns {Promise<any>} */
  const ask = (message) =>
    new Promise((resolve) => {
      asked += 1;
      const id = `${page}-${asked}`;
      const send = () => model.send({ ...message, id });
      waiting.set(id, { resolve, timer: setInterval(send, ASK_ANEW_MS) });
      send();
    });

  /** @param {{id: string}} message */
  const answered = (message) => {
    const found = waiting.get(message.id);
    if (found === undefined) return;
    waiting.delete(message.id);
    clearInterval(found.timer);
    found.resolve(message);
  };
  model.on("msg:custom", answered);

  const leave = () => {
    model.off("msg:custom", answered);
    for (const { timer } of waiting.values()) clearInterval(timer);
  };
  return { ask, leave };
}
