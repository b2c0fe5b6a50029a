// Styles: the declarations that every view shares, in the colours of the page's theme.
//
// In a view's own style each rule outweighs those of JupyterLab for what stands in an HTML output.

export const TEXT = `font: var(--jp-ui-font-size1, 13px)/1.4 var(--jp-ui-font-family, system-ui, sans-serif);
  color: var(--jp-ui-font-color1, var(--vscode-foreground, CanvasText));`;
export const CODE_FONT =
  "font: var(--jp-code-font-size, 13px)/1.4 var(--jp-code-font-family, monospace);";
export const MUTED = "color: var(--jp-ui-font-color2, inherit);";
export const ACCENT = "var(--jp-brand-color1, var(--vscode-focusBorder, LinkText))";
export const FOCUS_RING = `outline: 2px solid ${ACCENT};`;
export const EDGE = "1px solid var(--jp-border-color1, rgba(128, 128, 128, .5))";
export const CONTROL_EDGE = "1px solid var(--jp-border-color0, rgba(128, 128, 128, .7))";
export const HOVERED = "background: var(--jp-layout-color2, rgba(128, 128, 128, .15));";
/** Seen by nobody, said by screen readers. */
export const SPOKEN_ONLY =
  "position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap;";
