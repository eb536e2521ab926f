// Follows a running update: the server says when something is new.

export function follow(changed: (token: string) => void, connected: (yes: boolean) => void): void {
  const source = new EventSource("live");
  let last: string | null = null;
  let waiting = 0;
  source.onopen = () => connected(true);
  source.onerror = () => connected(false);
  source.onmessage = (event) => {
    const token = String(event.data);
    if (token === last) return;
    const first = last === null;
    last = token;
    if (first) return;
    clearTimeout(waiting);
    waiting = window.setTimeout(() => changed(token), 150);
  };
}
