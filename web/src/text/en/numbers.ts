/** Texts of the web app: numbers, amounts and times, and the forms of a word for one and for many. */

/** The language in which digits are grouped and amounts are written. Dates are in the browser's. */
const LOCALE = "en";

const usd = new Intl.NumberFormat(LOCALE, {
  style: "currency",
  currency: "USD",
  currencyDisplay: "narrowSymbol",
});

/** A count with its noun. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

export const numbers = {
  usd: (amount: number) => usd.format(amount),
  noUsd: "$0",
  smallUsd: "<$0.01",
  /** An amount that is much smaller than a cent. */
  fineUsd: (amount: number) => `$${Number(amount.toPrecision(2))}`,
  otherUnit: (amount: number, unit: string) => `${amount} ${unit}`,
  thousands: (count: string) => `${count}k`,
  millions: (count: string) => `${count}M`,
  now: "now",
  milliseconds: (ms: number) => `${ms} ms`,
  seconds: (count: number | string) => `${count} s`,
  minutes: (count: number) => `${count} min`,
  minutesSeconds: (minutes: number, seconds: number) => `${minutes} min ${seconds} s`,
  hours: (count: number) => `${count} h`,
  hoursMinutes: (hours: number, minutes: number) => `${hours} h ${minutes} min`,
  days: (count: number) => `${count} d`,
  kilobytes: (count: number) => `${count} KB`,
  gigabytes: (count: string) => `${count} GB`,
  megabytes: (count: number) => `${count} MB`,
};
