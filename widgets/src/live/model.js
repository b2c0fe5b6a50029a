// The model of a widget, as anywidget hands it to a view's module: what of it the views use.

/**
 * @typedef {{id: string}} Kernel
 * @typedef {{node: HTMLElement, renderModel: (model: object) => Promise<void>}} Renderer
 * @typedef {{createRenderer: (type: string) => Renderer, createModel: (options: object) => object,
 *   latexTypesetter?: {typeset: (node: HTMLElement) => void} | null}} Rendermime
 * @typedef {{isDisposed?: boolean, kernel?: Kernel | null, rendermime?: Rendermime}} Manager
 *   JupyterLab's; of other front ends nothing is known
 * @typedef {{get: (trait: string) => any, send: (message: object) => void,
 *   on: (event: string, heard: (message: any) => void) => void,
 *   off: (event: string, heard: (message: any) => void) => void, widget_manager?: Manager}} Model
 */

/**
 * Name the kernel that answers for a model, where its manager tells (JupyterLab's does): none when
 * the notebook was closed, which ends no model, or the kernel was shut down; another one after that.
 * @param {Model} model
 */
export function kernelOf(model) {
  const manager = model.widget_manager;
  return manager?.isDisposed ? undefined : manager?.kernel?.id;
}
