// Copying, also where a browser has no clipboard for the page: it has one over HTTPS and on
// loopback addresses only.

import { h } from "./dom";

/** Copies a text, or shows it selected, so that it can be copied by hand. */
export async function copyText(text: string, ofWhat: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // There is no clipboard, or it is refused.
    showText(text, ofWhat);
    return;
  }
  const said = h("p", { class: "copied", role: "status" }, `Copied ${ofWhat}`);
  document.body.append(said);
  window.setTimeout(() => said.remove(), 2000);
}

function showText(text: string, ofWhat: string): void {
  const field = h("input", { id: "copied-text", value: text, readonly: true, onfocus: () => field.select() });
  const panel = h("dialog", { class: "panel", "aria-label": `Copy ${ofWhat}` },
    h("p", {}, "The browser gives this page no clipboard. The text is selected: copy it by the browser\u2019s menu or Ctrl-C."),
    h("div", { class: "controls" }, h("label", { for: "copied-text" }, "Text"), field,
      h("button", { type: "button", onclick: () => panel.close() }, "Close")));
  panel.addEventListener("close", () => panel.remove());
  document.body.append(panel);
  panel.showModal();
  field.focus();
}
