// The bar at the end of a turn: what is done or waited for, how full the context is, the way to stop.

import { buttonOf } from "./elements.js";
import { grouped, percentOf } from "./words.js";

/**
 * @import { Make } from "./elements.js"
 * @import { Share, Status } from "./turn_state.js"
 * @import { Context } from "./turn_items.js"
 */

const QUIET_S = 2; // of silence before we say what is waited for
export const NOT_HEARD_S = 3; // without an answer to a button
export const NOT_HEARD =
  "The kernel doesn't hear this button while the cell runs; use its interrupt button ■.";
/** @type {Record<string, string>} */
const WAITS = {
  waiting: "waiting for",
  thinking: "waiting for",
  answering: "waiting for",
  tools: "running",
};

/** Draws the status of a turn, and how long it has been so. */
export class TurnBar {
  /** @param {Context} context */
  constructor({ make, send, now = () => performance.now() }) {
    this.make = make;
    this.now = now;
    this.node = make("div", "bar");
    this.said = make("span", "now");
    this.share = make("span", "context");
    this.stop = buttonOf(make, "Stop", () => {
      this.pressedAt = now();
      this.stop.disabled = true;
      send({ kind: "stop" });
      this.say();
    });
    this.spoken = make("span", "spoken");
    this.spoken.setAttribute("role", "status");
    this.spoken.setAttribute("aria-live", "polite");
    this.node.append(this.said, this.share, this.stop, this.spoken);
    /** @type {Status | null} */
    this.status = null;
    this.beganAt = 0;
    this.pressedAt = 0;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.tick = undefined;
  }

  /** Say what is waited for, again each second. */
  say() {
    const { status, node, stop } = this;
    clearTimeout(this.tick);
    if (status === null) return;
    const isUnheard = this.pressedAt > 0 && this.now() - this.pressedAt >= NOT_HEARD_S * 1000;
    const waitedS = (this.now() - this.beganAt) / 1000;
    this.said.textContent = isUnheard ? NOT_HEARD : statusText(status, waitedS);
    if (isUnheard) stop.disabled = false;
    if (status.phase !== "ended" && node.isConnected) {
      this.tick = setTimeout(() => this.say(), 1000);
    }
  }

  /** @param {Status | null} next @param {boolean} isNews whether anything of the turn changed */
  draw(next, isNews) {
    const { status } = this;
    this.node.hidden = next === null || (next.phase === "ended" && !next.last);
    const isOther = next?.phase !== status?.phase || next?.about !== status?.about;
    if (next !== null && (isOther || isNews)) {
      this.beganAt = this.now() - (isNews && !isOther ? 0 : next.waited_s * 1000);
    }
    if (next !== null && isOther) {
      this.pressedAt = 0;
      this.spoken.textContent = spokenStatus(next);
    }
    if (next?.context !== status?.context) drawShare(this.make, this.share, next?.context ?? null);
    this.status = next;
    this.drawStop(next);
    this.say();
  }

  /** @param {Status | null} status */
  drawStop(status) {
    const { stop } = this;
    const isStopping = status?.phase === "stopping";
    stop.hidden = this.share.hidden = status?.phase === "ended";
    if (this.pressedAt === 0) stop.disabled = isStopping && !status.about;
    if (!isStopping) stop.textContent = "Stop";
    else stop.textContent = status.about ? "Don't wait" : "Stopping …";
  }
}

/** Say what is waited for, and nothing where nothing is. @param {Status} status @param {number} seconds */
export function statusText({ phase, about, hint, last }, seconds) {
  if (phase === "ended") return last;
  if (phase === "asking") return "waiting for your answer";
  if (phase === "stopping") return about ? `stopping · waiting for ${about}` : "stopping";
  if (hint) return hint;
  if (seconds < QUIET_S) return "";
  return `${WAITS[phase] ?? ""} ${about} · ${grouped(Math.floor(seconds))} s`.trim();
}

/** What a screen reader says when the phase changes. @param {Status} status */
export function spokenStatus({ phase, about, last }) {
  /** @type {Record<string, string>} */
  const words = {
    thinking: "reasoning",
    answering: "answering",
    tools: `running ${about}`,
    asking: "a tool waits for your approval",
    stopping: about ? `stopping, waiting for ${about}` : "stopping",
    ended: last || "ended",
  };
  return words[phase] ?? "";
}

/** @param {Share} share */
const shareInWords = ({ used, window }) =>
  `context ${Math.round((100 * used) / Math.max(1, window))} %`;

/** Say in words how full the context is. @param {Share} share */
export const spokenShare = (share) =>
  `${shareInWords(share)}, ${grouped(share.used)} of ${grouped(share.window)} tokens, ` +
  `compacts past ${grouped(share.threshold)}`;

/** @param {Make} make @param {HTMLElement} node @param {Share | null} share */
function drawShare(make, node, share) {
  if (share === null) {
    node.replaceChildren();
    return;
  }
  const meter = make("span", "meter");
  const [used, mark] = [make("span", "used"), make("span", "mark")];
  used.style.setProperty("width", percentOf(share.used, share.window, 1));
  mark.style.setProperty("left", percentOf(share.threshold, share.window, 1));
  meter.setAttribute("role", "meter");
  meter.setAttribute("aria-label", "Context");
  meter.setAttribute("aria-valuemin", "0");
  meter.setAttribute("aria-valuemax", String(share.window));
  meter.setAttribute("aria-valuenow", String(Math.min(share.used, share.window)));
  meter.setAttribute("aria-valuetext", spokenShare(share));
  meter.setAttribute("title", spokenShare(share));
  meter.append(used, mark);
  const text = make("span", "percent", shareInWords(share));
  text.setAttribute("aria-hidden", "true");
  node.replaceChildren(meter, text);
}
