// Controls above lists. `key` names one across drawings, so that it keeps the focus.

import { type Child, h } from "./dom";

/** A box for a text; `changed` gets it without spaces around it, in lower case. */
export function filterBox(label: string, key: string, value: string, changed: (text: string) => void): HTMLElement {
  const oninput = (event: Event) => changed((event.target as HTMLInputElement).value.trim().toLowerCase());
  return h("input", { type: "search", placeholder: label, "aria-label": label, "data-key": key, value, oninput });
}

export function checkBox(label: string, key: string, checked: boolean, changed: (on: boolean) => void): HTMLElement {
  const onchange = (event: Event) => changed((event.target as HTMLInputElement).checked);
  return h("label.check", {}, h("input", { type: "checkbox", "data-key": key, checked, onchange }), label);
}

/** A list to choose one of; `options` are values with their texts. */
export function choice(
  label: string,
  key: string,
  options: [string, string][],
  value: string,
  changed: (value: string) => void,
): HTMLElement {
  const onchange = (event: Event) => changed((event.target as HTMLSelectElement).value);
  const shown = options.map(([one, text]) => h("option", { value: one, selected: one === value }, text));
  return h("select", { "aria-label": label, "data-key": key, onchange }, shown);
}

/** A button that is pressed or not; `name` is an element's name with classes. */
export function toggle(
  name: string,
  key: string,
  value: string,
  onclick: () => void,
  ...children: Child[]
): HTMLElement {
  return h(name, { type: "button", "data-key": `${key}-${value}`, "data-value": value, onclick }, ...children);
}

/** Show which of the buttons is pressed. */
export function press(buttons: HTMLElement[], value: string): void {
  for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.value === value));
}

export const group = (name: string, label: string, buttons: HTMLElement[]): HTMLElement =>
  h(name, { role: "group", "aria-label": label }, buttons);
