import js from "@eslint/js";
import globals from "globals";
import typescript from "typescript-eslint";

// A view is a function of an element and a state, so that the side panel of JupyterLab can draw it too.
const KNOWS_NO_WIDGET = {
  patterns: [{ group: ["../live/*", "../entries/*"], message: "Views know no widget." }],
};

export default [
  { ignores: ["**/dist/", "**/lib/", ".*/", "agent_magics/static/"] },
  js.configs.recommended,
  { files: ["widgets/src/**"], languageOptions: { globals: globals.browser } },
  { files: ["widgets/*.js", "tests/widgets/**"], languageOptions: { globals: globals.node } },
  {
    files: ["widgets/src/views/**"],
    rules: { "no-restricted-imports": ["error", KNOWS_NO_WIDGET] },
  },
  ...typescript.configs.recommended.map((config) => ({
    ...config,
    files: ["labextension/src/**/*.ts"],
  })),
];
