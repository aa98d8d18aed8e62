const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;

/** A time zone by what it adds to UTC. Points in time are milliseconds since 1970, `clock` what a clock there shows, as if it were UTC. */
export type Zone = Readonly<{
  /** Milliseconds that clocks are ahead of UTC at a point in time. */
  offset(time: number): number;
  /** The first minute in (after, until] at which the offset is another one than right at `after`; undefined: none. */
  change(after: number, until: number): number | undefined;
  /**
   * The point in time at which clocks first show this; where they never do, because they are put forward over it, the
   * first minute that is there again.
   */
  first(clock: number): number;
}>;

const formats = new Map<string, Intl.DateTimeFormat>();

function format(name: string): Intl.DateTimeFormat {
  const known = formats.get(name);
  if (known) return known;
  const made = new Intl.DateTimeFormat('en-US', {
    timeZone: name,
    calendar: 'gregory',
    numberingSystem: 'latn',
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
  formats.set(name, made);
  return made;
}

/** @throws RangeError for a name that is no IANA zone */
export function openZone(name: string): Zone {
  const clocks = format(name);

  function offset(time: number): number {
    const second = time - (((time % 1000) + 1000) % 1000);
    const part = Object.fromEntries(clocks.formatToParts(second).map(({ type, value }) => [type, Number(value)]));
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0 } = part;
    return Date.UTC(year, month - 1, day, hour, minute, part['second']) - second;
  }

  function change(after: number, until: number): number | undefined {
    const known = offset(after);
    // By days, for no zone changes twice within one; then by halves.
    for (let low = after; low < until; low += DAY_MS) {
      let high = Math.min(low + DAY_MS, until);
      if (offset(high) === known) continue;
      let same = low;
      while (high - same > 1) {
        const middle = Math.floor((same + high) / 2);
        if (offset(middle) === known) same = middle;
        else high = middle;
      }
      return Math.ceil(high / MINUTE_MS) * MINUTE_MS;
    }
    return undefined;
  }

  return {
    offset,
    change,
    first(clock) {
      // What held a day before, and what holds a day after: one of them holds now, or both, or the clock jumps.
      const before = clock - offset(clock - DAY_MS);
      if (before + offset(before) === clock) return before;
      const after = clock - offset(clock + DAY_MS);
      if (after + offset(after) === clock) return after;
      return change(clock - DAY_MS, clock + DAY_MS) ?? before;
    },
  };
}
