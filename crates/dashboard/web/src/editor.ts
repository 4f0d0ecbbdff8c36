// The box for queries: CodeMirror with completion, and with what is wrong as it is typed. This
// file is loaded when the box is first shown.

import { autocompletion, closeBrackets, completionKeymap, type Completion, type CompletionContext } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { lintGutter, linter, type Diagnostic } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { EditorView, drawSelection, keymap, lineNumbers } from "@codemirror/view";
import { api } from "./api";

interface Word {
  name: string;
  kind: string;
  type: string;
  doc: string;
}

interface Checked {
  diagnostics: { from: number; to: number; severity: "error" | "warning"; message: string; help?: string }[];
}

/** An error or a warning, by its line. */
export interface Finding {
  line: number;
  severity: "error" | "warning";
  message: string;
  help?: string;
}

interface Callbacks {
  label: string;
  run: () => void;
  found: (all: Finding[]) => void;
  typed: (text: string) => void;
}

/** The names of the icons of completion. */
const KINDS: Record<string, string> = {
  field: "property", key: "constant", part: "interface", function: "function", aggregate: "method", stage: "keyword",
};

let words: Promise<Completion[]> | undefined;

function completions(): Promise<Completion[]> {
  words ??= api<{ words: Word[] }>("GET", "fields").then((all) => {
    const stages = ["packets", "let", "param", "by", "every", "and", "or", "not", "in"];
    const plain = stages.map((label): Completion => ({ label, type: "keyword" }));
    return plain.concat(all.words.map(({ name, kind, type, doc }): Completion => ({
      label: name, type: KINDS[kind] ?? "text", detail: type || kind, info: doc || undefined,
    })));
  });
  return words;
}

async function complete(context: CompletionContext) {
  const word = context.matchBefore(/[A-Za-z_][\w.-]*/);
  if (!word && !context.explicit) return null;
  const options = await completions().catch(() => []);
  return { from: word ? word.from : context.pos, options, validFor: /^[\w.-]*$/ };
}

export class Editor {
  private readonly view: EditorView;

  constructor(place: HTMLElement, text: string, private readonly back: Callbacks) {
    const nonce = document.querySelector<HTMLMetaElement>("meta[name=nonce]")?.content ?? "";
    const run = { key: "Mod-Enter", run: () => (back.run(), true) };
    const changes = EditorView.updateListener.of((update) => {
      if (update.docChanged) back.typed(update.state.doc.toString());
    });
    this.view = new EditorView({
      parent: place,
      state: EditorState.create({
        doc: text,
        extensions: [
          EditorView.cspNonce.of(nonce),
          EditorView.contentAttributes.of({ "aria-label": back.label, spellcheck: "false" }),
          EditorView.lineWrapping,
          lineNumbers(), lintGutter(), history(), drawSelection(), closeBrackets(),
          autocompletion({ override: [complete] }),
          linter((view) => this.check(view), { delay: 250 }),
          // Tab goes on through the page: Ctrl-Space completes, Enter takes a completion.
          keymap.of([run, ...completionKeymap, ...historyKeymap, ...defaultKeymap]),
          changes,
        ],
      }),
    });
  }

  set(text: string): void {
    this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text } });
  }

  focus(): void {
    this.view.focus();
  }

  destroy(): void {
    this.view.destroy();
  }

  private async check(view: EditorView): Promise<Diagnostic[]> {
    const { doc } = view.state;
    const { diagnostics } = await api<Checked>("POST", "check", { text: doc.toString() });
    const within = (at: number) => Math.min(at, doc.length);
    this.back.found(diagnostics.map(({ from, severity, message, help }) => ({
      line: doc.lineAt(within(from)).number, severity, message, help,
    })));
    return diagnostics.map(({ from, to, severity, message, help }) => ({
      from: within(from), to: within(to), severity, message: help ? `${message} (${help})` : message,
    }));
  }
}
