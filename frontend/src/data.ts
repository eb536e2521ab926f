// Documents are scripts that call `lakelet(name, value)`: a page that was opened from disk may load those,
// and may not fetch.

declare global {
  interface Window {
    lakelet: (name: string, value: unknown) => void;
  }
}

const arrived = new Map<string, unknown>();
const asked = new Map<string, Promise<unknown>>();
let version = "";

window.lakelet = (name, value) => void arrived.set(name, value);

/** The document of a name, loaded once until `forget`. Rejects where there is none. */
export function load<T>(name: string): Promise<T> {
  let found = asked.get(name);
  if (!found) {
    found = new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = `data/${name}.js${version}`;
      script.onload = () => {
        script.remove();
        resolve(arrived.get(name));
        arrived.delete(name);
      };
      script.onerror = () => {
        script.remove();
        asked.delete(name);
        reject(new Error(`data/${name}.js cannot be loaded`));
      };
      document.head.append(script);
    });
    asked.set(name, found);
  }
  return found as Promise<T>;
}

/** Everything is loaded again when it is asked for next; `token` keeps the browser from its cache. */
export function forget(token: string): void {
  version = `?v=${encodeURIComponent(token)}`;
  asked.clear();
}
