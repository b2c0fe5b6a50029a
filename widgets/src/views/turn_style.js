// What the turn view looks like.

import {
  CODE_FONT,
  CONTROL_EDGE,
  EDGE,
  FOCUS_RING,
  HOVERED,
  MUTED,
  SPOKEN_ONLY,
  TEXT,
} from "./styles.js";

export const STYLE = `
.am-turn { ${TEXT} overflow-wrap: anywhere; }
.am-turn [hidden][hidden] { display: none; }
.am-turn .am-turn__text { white-space: pre-wrap; unicode-bidi: plaintext; }
.am-turn .am-turn__text--rendered { white-space: normal; font-family: var(--jp-content-font-family, inherit);
  font-size: var(--jp-content-font-size1, inherit); }
.am-turn .am-turn__text--rendered p { text-align: start; }
.am-turn .am-turn__text--rendered a { text-decoration: underline; }
.am-turn .am-turn__text--rendered:not(:last-child) > * > :last-child { margin-bottom: 1em; }
.am-turn details.am-turn__fold { margin: 4px 0; padding: 0; border: 0; background: none; }
.am-turn summary.am-turn__line { cursor: pointer; padding: 2px 0; border-radius: 3px; }
.am-turn .am-turn__code { font-family: var(--jp-code-font-family, monospace); font-size: var(--jp-code-font-size, 13px);
  unicode-bidi: plaintext; color: inherit; }
.am-turn .am-turn__said { ${MUTED} margin-inline-start: 8px; }
.am-turn .am-turn__said--failed { color: var(--jp-error-color1, inherit); }
.am-turn .am-turn__body { margin: 2px 0 6px 16px; }
.am-turn .am-turn__label { margin: 4px 0 0; font-size: .9em; ${MUTED} }
.am-turn pre.am-turn__pre { margin: 2px 0; padding: 6px 8px; max-height: 320px; overflow: auto; border-radius: 3px;
  white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: plaintext;
  ${CODE_FONT} color: inherit;
  border: 1px solid var(--jp-border-color2, rgba(128, 128, 128, .35)); background: var(--jp-cell-editor-background, transparent); }
.am-turn .am-turn__thoughts { white-space: pre-wrap; unicode-bidi: plaintext; max-height: 320px; overflow: auto;
  margin-bottom: 6px; ${MUTED} }
.am-turn p.am-turn__note { margin: 4px 0; font-style: italic; unicode-bidi: plaintext; }
.am-turn .am-turn__question { margin: 8px 0; padding: 8px 10px; border-radius: 4px;
  border: ${EDGE};
  border-inline-start: 4px solid var(--jp-warn-color1, #b8762a); }
.am-turn p.am-turn__head { margin: 0 0 4px; font-weight: 600; }
.am-turn p.am-turn__notice { margin: 6px 0 0; color: var(--jp-error-color1, inherit); }
.am-turn p.am-turn__notice:empty { display: none; }
.am-turn textarea.am-turn__edit { width: 100%; box-sizing: border-box; resize: vertical; tab-size: 4; padding: 6px 8px;
  ${CODE_FONT}
  color: inherit; background: var(--jp-layout-color1, Canvas); border: ${EDGE}; }
.am-turn input.am-turn__why { width: 100%; box-sizing: border-box; margin-top: 6px; padding: 4px 8px; font: inherit; color: inherit;
  background: var(--jp-layout-color1, Canvas); border: ${CONTROL_EDGE}; border-radius: 3px; }
.am-turn .am-turn__buttons { display: flex; flex-wrap: wrap; gap: 6px; margin-top: 6px; }
.am-turn button.am-turn__button { font: inherit; color: var(--jp-ui-font-color1, inherit); cursor: pointer; padding: 3px 12px; border-radius: 3px;
  border: ${CONTROL_EDGE}; background: var(--jp-layout-color1, transparent); }
.am-turn button.am-turn__button:hover:enabled { ${HOVERED} }
.am-turn button.am-turn__button:disabled { cursor: default; color: var(--jp-ui-font-color2, GrayText); border-style: dashed; }
.am-turn button.am-turn__button--yes { font-weight: 600; border-color: var(--jp-brand-color1, currentColor);
  box-shadow: inset 0 0 0 1px var(--jp-brand-color1, currentColor); }
.am-turn :is(button, summary, textarea, input, pre, .am-turn__thoughts):focus-visible {
  ${FOCUS_RING} outline-offset: 1px; }
.am-turn .am-turn__bar { display: flex; flex-wrap: wrap; align-items: center; gap: 4px 12px; min-height: 28px; margin-top: 4px;
  ${MUTED} }
.am-turn .am-turn__now { flex: 1 1 8em; min-width: 0; font-variant-numeric: tabular-nums; }
.am-turn .am-turn__context { display: inline-flex; align-items: center; gap: 6px; font-variant-numeric: tabular-nums; }
.am-turn .am-turn__meter { position: relative; width: 64px; height: 8px; border-radius: 2px; overflow: hidden;
  box-shadow: inset 0 0 0 1px var(--jp-border-color1, rgba(128, 128, 128, .5)); }
.am-turn .am-turn__used { position: absolute; inset: 0 auto 0 0; background: var(--jp-brand-color1, #5b7fd4); }
.am-turn .am-turn__mark { position: absolute; top: 0; bottom: 0; width: 2px; background: var(--jp-ui-font-color1, currentColor); }
.am-turn .am-turn__spoken { ${SPOKEN_ONLY} }
`;
