// What the usage so far says about the days to come. Pure.

const DAY = 86_400_000;
const HOUR = 3_600_000;
/** Days that count as "lately". */
const LATELY = 7;

/** What one day costs on average, over the last seven days up to today. */
export function pace(byDay: ReadonlyMap<string, number>, today: string): number {
  const end = Date.parse(today);
  let sum = 0;
  for (let back = 0; back < LATELY; back += 1)
    sum += byDay.get(new Date(end - back * DAY).toISOString().slice(0, 10)) ?? 0;
  return sum / LATELY;
}

/** The sum of the month that `today` is in, if each day that is left is like the last seven. */
export function monthForecast(byDay: ReadonlyMap<string, number>, today: string): number {
  const month = today.slice(0, 7);
  const spent = [...byDay]
    .filter(([day]) => day.startsWith(month))
    .reduce((sum, [, value]) => sum + value, 0);
  const [year = 0, number = 1] = month.split("-").map(Number);
  const days = new Date(Date.UTC(year, number, 0)).getUTCDate();
  const left = days - Number(today.slice(8, 10));
  return spent + left * pace(byDay, today);
}

/** How long a limit of an account lasts, by the name that the CLI gives it. */
const WINDOWS: Record<string, number> = { five_hour: 5 * HOUR, seven_day: 7 * DAY };

/** When a limit is reached if usage goes on as since its beginning; undefined: not before its reset. */
export function limitReached(limit: {
  limit: string;
  used?: number | null;
  resets_at?: number | null;
  at: number;
}): number | undefined {
  const { used, resets_at: reset, at } = limit;
  const window = Object.entries(WINDOWS).find(([name]) => limit.limit.startsWith(name))?.[1];
  if (!used || !reset || !window || used >= 1) return undefined;
  const passed = at - (reset - window);
  if (passed <= 0) return undefined;
  const reached = at + ((1 - used) / used) * passed;
  return reached < reset ? reached : undefined;
}
