// Light or dark: the system's choice until the reader makes one.

const KEY = "lakelet-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

function stored(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

export const theme = (): string => document.documentElement.dataset.theme ?? "light";

export function startTheme(changed: () => void): void {
  const apply = () => {
    document.documentElement.dataset.theme = stored() ?? (system.matches ? "dark" : "light");
  };
  apply();
  system.addEventListener("change", () => {
    apply();
    changed();
  });
}

export function switchTheme(): void {
  const next = theme() === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  try {
    localStorage.setItem(KEY, next);
  } catch {
    /* the choice lasts as long as the page */
  }
}
