// Times in readable form. Buckets are UTC; labels use UTC or local time, and always name which.
import { signal } from "@preact/signals";

export const local = signal(read());

function read(): boolean {
  try { return localStorage.getItem("kuberewind.local") === "true"; } catch { return false; }
}

export function toggleLocal(): void {
  local.value = !local.value;
  try { localStorage.setItem("kuberewind.local", String(local.value)); } catch { /* Then it applies only to this tab. */ }
}

const two = (n: number) => String(n).padStart(2, "0");

/** offset returns how many minutes the labels are ahead of UTC at a time. */
export const offset = (ms: number) => (local.value ? -new Date(ms).getTimezoneOffset() : 0);

export function zone(ms: number): string {
  if (!local.value) return "UTC";
  const minutes = offset(ms), abs = Math.abs(minutes);
  return `${minutes < 0 ? "−" : "+"}${two(Math.floor(abs / 60))}:${two(abs % 60)}`;
}

/** zoneName is the name of the labels' time zone for the server. */
export const zoneName = () => (local.value ? Intl.DateTimeFormat().resolvedOptions().timeZone : "UTC");

const shifted = (ms: number) => new Date(ms + offset(ms) * 60_000);

export function day(ms: number): string {
  const d = shifted(ms);
  return `${d.getUTCFullYear()}-${two(d.getUTCMonth() + 1)}-${two(d.getUTCDate())}`;
}

export function clock(ms: number, seconds = true, millis = false): string {
  const d = shifted(ms);
  return `${two(d.getUTCHours())}:${two(d.getUTCMinutes())}${seconds ? `:${two(d.getUTCSeconds())}` : ""}${millis ? `.${String(d.getUTCMilliseconds()).padStart(3, "0")}` : ""}`;
}

export const full = (ms: number) => `${day(ms)} ${clock(ms, true, true)} ${zone(ms)}`;

/** brief omits the day if the other shown time has the same day. */
export const brief = (ms: number, other: number) => (day(ms) === day(other) ? clock(ms) : `${day(ms)} ${clock(ms)}`);

export function span(ms: number): string {
  const s = Math.abs(ms) / 1000;
  if (s < 1) return `${Math.round(s * 1000)} ms`;
  if (s < 90) return `${Math.round(s)} s`;
  if (s < 5400) return `${Math.round(s / 60)} min`;
  return s < 129_600 ? `${Math.round(s / 360) / 10} h` : `${Math.round(s / 8640) / 10} d`;
}

/** One shared format: toLocaleString would make one for each number, and a frame has hundreds. */
const grouped = new Intl.NumberFormat("en-US");
export const count = (n: number) => grouped.format(n);

export const compact = (n: number) => (n < 1000 ? String(n) : n < 99_950 ? `${Math.round(n / 100) / 10}k` : n < 1e6 ? `${Math.round(n / 1000)}k` : `${Math.round(n / 1e5) / 10}M`);

const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 108e5, 216e5, 432e5, 864e5, 1728e5, 6048e5, 2592e6, 7776e6, 31536e6];

/** step returns the smallest round duration that is at least ms. */
export const step = (ms: number) => steps.find((s) => s >= ms) ?? Math.ceil(ms / 31536e6) * 31536e6;

/** marks returns the labelled instants of a ruler. The first label of a day shows the date. */
export function marks(from: number, to: number, room: number): { ms: number; label: string; strong: boolean }[] {
  const by = step((to - from) / Math.max(1, room)), found = [];
  let seen = "";
  for (let ms = aligned(from, by); ms < to && found.length < 200; ms = aligned(ms + by, by)) {
    const today = day(ms), fresh = today !== seen;
    seen = today;
    const time = clock(ms, by < 60_000, by < 1000);
    found.push({ ms, label: by >= 86_400_000 ? today.slice(5) : fresh && found.length > 0 ? today.slice(5) : time, strong: fresh });
  }
  return found;
}

function aligned(ms: number, by: number): number {
  const shift = offset(ms) * 60_000;
  return Math.ceil((ms + shift) / by) * by - shift;
}

/** changeOfOffset returns the time in a window at which the labels' offset changes; null if it does not. */
export function changeOfOffset(from: number, to: number): number | null {
  if (offset(from) === offset(to)) return null;
  let low = from, high = to;
  while (high - low > 1000) {
    const middle = (low + high) / 2;
    if (offset(middle) === offset(from)) low = middle; else high = middle;
  }
  return high;
}
