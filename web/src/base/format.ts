/** Formatting of numbers, times and names. */

const integerFormat = new Intl.NumberFormat("en");

export function formatCount(value: number, singular: string, plural = `${singular}s`): string {
  return `${integerFormat.format(value)} ${value === 1 ? singular : plural}`;
}

export function formatNumber(value: number): string {
  return integerFormat.format(value);
}

/** Format a probability in per cent; 100 % and 0 % are exact. */
export function formatPercent(p: number): string {
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
const relativeFormat = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

export function formatAge(timestamp: string, currentTime: number = Date.now()): string {
  const time = Date.parse(/[zZ]|[+-]\d\d:?\d\d$/.test(timestamp) ? timestamp : `${timestamp}Z`);
  if (Number.isNaN(time)) return timestamp;
  const seconds = (time - currentTime) / 1000;
  for (const [unit, length] of STEPS) {
    if (Math.abs(seconds) >= length) return relativeFormat.format(Math.round(seconds / length), unit);
  }
  return "just now";
}

export function formatBytes(size: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let value = size;
  let step = 0;
  while (value >= 1000 && step < units.length - 1) {
    value /= 1000;
    step += 1;
  }
  return `${value < 10 && step ? value.toFixed(1) : Math.round(value)} ${units[step]}`;
}

export function getFileName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
