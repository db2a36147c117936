/** Numbers, times and names as people read them. */

const whole = new Intl.NumberFormat("en");

export function count(number: number, one: string, many = `${one}s`): string {
  return `${whole.format(number)} ${number === 1 ? one : many}`;
}

export function number(value: number): string {
  return whole.format(value);
}

/** A probability in per cent: never 100 % or 0 % of what is only near. */
export function percent(p: number): string {
  const rounded = Math.round(p * 100);
  if (rounded === 100 && p < 1) return "99 %";
  if (rounded === 0 && p > 0) return "< 1 %";
  return `${rounded} %`;
}

const STEPS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["year", 31557600],
  ["month", 2629800],
  ["week", 604800],
  ["day", 86400],
  ["hour", 3600],
  ["minute", 60],
];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

export function ago(at: string, now: number = Date.now()): string {
  const then = Date.parse(/[zZ]|[+-]\d\d:?\d\d$/.test(at) ? at : `${at}Z`);
  if (Number.isNaN(then)) return at;
  const seconds = (then - now) / 1000;
  for (const [unit, length] of STEPS) {
    if (Math.abs(seconds) >= length) return relative.format(Math.round(seconds / length), unit);
  }
  return "just now";
}

export function bytes(size: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let value = size;
  let step = 0;
  while (value >= 1000 && step < units.length - 1) {
    value /= 1000;
    step += 1;
  }
  return `${value < 10 && step ? value.toFixed(1) : Math.round(value)} ${units[step]}`;
}

export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
