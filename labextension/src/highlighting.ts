// `%%agent`, `%%slot` and `%%compact` cells read as what they are: a magic's header line, Markdown
// below it, and `{{expr}}` that takes values of the kernel. The cell's mime type stays as it is.

import { JupyterFrontEnd, JupyterFrontEndPlugin } from "@jupyterlab/application";
import {
  EditorExtensionRegistry,
  IEditorExtensionRegistry,
  IEditorLanguageRegistry,
} from "@jupyterlab/codemirror";
import { LanguageSupport } from "@codemirror/language";
import {
  Compartment,
  EditorState,
  Extension,
  Prec,
  RangeSetBuilder,
  Text,
} from "@codemirror/state";
import { Decoration, DecorationSet, EditorView, ViewPlugin, ViewUpdate } from "@codemirror/view";

const MARKDOWN = "text/x-ipythongfm";
const HEADER = /^%%(?:agent|slot|compact)(?=\s|$)/;
const VALUE = /(?<!\\)\{\{[^{}\n]*\}\}/g;

const header = Decoration.line({ class: "cm-agentMagicsHeader" });
const value = Decoration.mark({ class: "cm-agentMagicsValue" });

// The colours are the page theme's own, so that both themes fit.
const theme = EditorView.baseTheme({
  ".cm-agentMagicsHeader, .cm-agentMagicsHeader span": {
    color: "var(--jp-mirror-editor-meta-color, #aa22ff) !important",
    fontWeight: "normal",
    fontStyle: "normal",
    textDecoration: "none",
  },
  ".cm-agentMagicsValue, .cm-agentMagicsValue span": {
    color: "var(--jp-mirror-editor-def-color, #0000ff) !important",
  },
  ".cm-agentMagicsValue": {
    borderRadius: "2px",
    backgroundColor: "color-mix(in srgb, currentColor 12%, transparent)",
  },
});

/** Find the number of the header line: the first that isn't blank, if it is one of ours. */
export function headerLine(doc: Text): number | null {
  for (let number = 1; number <= doc.lines; number++) {
    const line = doc.line(number).text;
    if (line.trim() !== "") {
      return HEADER.test(line) ? number : null;
    }
  }
  return null;
}

function marksOf(view: EditorView): DecorationSet {
  const { doc } = view.state;
  const marks = new RangeSetBuilder<Decoration>();
  const at = headerLine(doc);
  if (at === null) {
    return marks.finish();
  }
  for (const { from, to } of view.visibleRanges) {
    const last = doc.lineAt(to).number;
    for (let number = Math.max(at, doc.lineAt(from).number); number <= last; number++) {
      const line = doc.line(number);
      if (number === at) {
        marks.add(line.from, line.from, header);
      }
      for (const found of line.text.matchAll(VALUE)) {
        marks.add(line.from + found.index, line.from + found.index + found[0].length, value);
      }
    }
  }
  return marks.finish();
}

const marks = ViewPlugin.fromClass(
  class {
    decorations: DecorationSet;

    constructor(view: EditorView) {
      this.decorations = marksOf(view);
    }

    update(update: ViewUpdate) {
      if (update.docChanged || update.viewportChanged) {
        this.decorations = marksOf(update.view);
      }
    }
  },
  { decorations: (plugin) => plugin.decorations },
);

/** Loads a language once; `now` is it as soon as it is there. */
class Language {
  now: LanguageSupport | null = null;
  readonly loaded: Promise<void>;

  constructor(loading: Promise<{ support?: LanguageSupport } | null>) {
    this.loaded = loading.then((found) => {
      this.now = found?.support ?? null;
    });
  }
}

/**
 * Make the extension of one editor: Markdown while its text begins with one of our cell magics,
 * the language of its mime type else. `source` is the text that the editor begins with.
 */
function cellLanguage(markdown: Language, source: string): Extension {
  const place = new Compartment();
  const ours = (): Extension =>
    markdown.now ? [Prec.highest(markdown.now.extension), marks] : marks;
  const isOurs = (doc: Text) => headerLine(doc) !== null;

  const follow = EditorState.transactionExtender.of(({ docChanged, startState, newDoc }) => {
    const willBe = docChanged && isOurs(newDoc);
    if (!docChanged || willBe === isOurs(startState.doc)) {
      return null;
    }
    return { effects: place.reconfigure(willBe ? ours() : []) };
  });
  const catchUp = ViewPlugin.define((view) => {
    let isGone = false;
    if (!markdown.now) {
      void markdown.loaded.then(() => {
        if (!isGone && isOurs(view.state.doc)) {
          view.dispatch({ effects: place.reconfigure(ours()) });
        }
      });
    }
    return {
      destroy: () => {
        isGone = true;
      },
    };
  });
  const begins = isOurs(Text.of(source.split("\n")));
  return [place.of(begins ? ours() : []), follow, catchUp, theme];
}

export const highlighting: JupyterFrontEndPlugin<void> = {
  id: "agent-magics-labextension:highlighting",
  description: "Highlights %%agent, %%slot and %%compact cells as Markdown.",
  autoStart: true,
  requires: [IEditorExtensionRegistry, IEditorLanguageRegistry],
  activate: (
    _app: JupyterFrontEnd,
    extensions: IEditorExtensionRegistry,
    languages: IEditorLanguageRegistry,
  ) => {
    const markdown = new Language(languages.getLanguage(MARKDOWN));
    extensions.addExtension({
      name: "agent-magics-labextension:cell-language",
      factory: (options) =>
        options.inline
          ? EditorExtensionRegistry.createImmutableExtension(
              cellLanguage(markdown, options.model.sharedModel.getSource()),
            )
          : null,
    });
  },
};
