// The plugins that agent-magics adds to JupyterLab; each lives in its own file.

import { JupyterFrontEndPlugin } from "@jupyterlab/application";

import { highlighting } from "./highlighting";

const plugins: JupyterFrontEndPlugin<void>[] = [highlighting];
export default plugins;
