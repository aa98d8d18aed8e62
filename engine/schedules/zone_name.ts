import { openZone } from './zone.ts';

const WEEK_MS = 7 * 86_400_000;
const WEEKS = 105;
const MINUTE_MS = 60_000;

/** `Area/Place`. Digits stand in `Etc/GMT-5` alone: elsewhere Postgres would read them as a rule of POSIX. */
const FORM = /^(?:UTC|Etc\/GMT(?:[+-]?1?\d)?|(?!(?:posix|right|SystemV)\/)[A-Za-z_]+(?:\/[A-Za-z_-]+)+)$/i;
const OFFSET = /^(?:UTC|GMT)?([+-])0?(\d{1,2})(?::?00)?$/i;

/**
 * Where people mean something else than `Intl` does (it reads EST as Panama's time), or more than one zone.
 * The rest of what `Intl` knows is asked of it.
 */
const ABBREVIATIONS: Readonly<Record<string, readonly string[]>> = {
  AEST: ['Australia/Sydney', 'Australia/Brisbane'],
  AST: ['America/Halifax', 'America/Puerto_Rico'],
  AWST: ['Australia/Perth'],
  BRT: ['America/Sao_Paulo'],
  BST: ['Europe/London', 'Asia/Dhaka'],
  CDT: ['America/Chicago'],
  CEST: ['Europe/Berlin'],
  CET: ['Europe/Berlin'],
  CST: ['America/Chicago', 'Asia/Shanghai'],
  EDT: ['America/New_York'],
  EEST: ['Europe/Helsinki'],
  EET: ['Europe/Helsinki'],
  EST: ['America/New_York', 'America/Panama'],
  HKT: ['Asia/Hong_Kong'],
  IST: ['Asia/Kolkata', 'Asia/Jerusalem', 'Europe/Dublin'],
  JST: ['Asia/Tokyo'],
  KST: ['Asia/Seoul'],
  MDT: ['America/Denver'],
  MSK: ['Europe/Moscow'],
  MST: ['America/Denver', 'America/Phoenix'],
  NST: ['America/St_Johns'],
  NZDT: ['Pacific/Auckland'],
  NZST: ['Pacific/Auckland'],
  PDT: ['America/Los_Angeles'],
  PKT: ['Asia/Karachi'],
  SAST: ['Africa/Johannesburg'],
  SGT: ['Asia/Singapore'],
  WEST: ['Europe/Lisbon'],
  WET: ['Europe/Lisbon'],
  Z: ['UTC'],
};

function intlName(text: string): string | undefined {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: text }).resolvedOptions().timeZone;
  } catch {
    return undefined;
  }
}

/**
 * The name of a zone with its case put right; undefined for what is none. Taken are `UTC` and `Area/Place`, old names of a
 * place (`Asia/Calcutta`) too, which browsers report and which stay what they are. Abbreviations are not: Postgres takes
 * `BST` for London's summer and `Intl` takes it for Dhaka.
 */
export function zoneName(text: string): string | undefined {
  if (!FORM.test(text)) return undefined;
  const name = intlName(text);
  return name?.toLowerCase() === text.toLowerCase() ? name : name && text;
}

/** The names that may be meant by a text that names no zone, or one that Postgres does not know; none: unknown. */
export function zonesMeant(text: string): readonly string[] {
  const known = ABBREVIATIONS[text.toUpperCase()];
  if (known) return known;
  const [, sign, hours] = OFFSET.exec(text) ?? [];
  // The signs of these names are the other way round.
  const name = intlName(hours ? `Etc/GMT${sign === '+' ? '-' : '+'}${Number(hours)}` : text);
  return name && name !== text && zoneName(name) ? [name] : [];
}

/** Zones whose clocks show the same for the next two years by `Intl`: the one without rules, or others of the same area. */
export function* zonesLike(name: string, now: Date): Generator<string> {
  const { instants, seconds } = zoneOffsets(name, now);
  const ahead = seconds[0] ?? 0;
  if (ahead % 3600 === 0 && seconds.every((offset) => offset === ahead)) {
    // The signs of these names are the other way round.
    yield ahead === 0 ? 'UTC' : `Etc/GMT${ahead > 0 ? '-' : '+'}${Math.abs(ahead) / 3600}`;
  }
  const area = name.slice(0, name.indexOf('/') + 1);
  for (const other of Intl.supportedValuesOf('timeZone')) {
    if (other === name || !other.startsWith(area) || zoneName(other) === undefined) continue;
    const { offset } = openZone(other);
    if (instants.every((instant, place) => offset(instant.getTime()) / 1000 === seconds[place])) yield other;
  }
}

/** Points in time over the next two years, and the seconds that clocks of the zone are ahead of UTC at each, by `Intl`. */
export type ZoneOffsets = Readonly<{ instants: readonly Date[]; seconds: readonly number[] }>;

/** What another engine has to agree on: every week, and the minutes around each change. */
export function zoneOffsets(name: string, now: Date): ZoneOffsets {
  const zone = openZone(name);
  const times: number[] = [];
  const start = Math.floor(now.getTime() / MINUTE_MS) * MINUTE_MS;
  for (let week = 0; week < WEEKS; week += 1) {
    const from = start + week * WEEK_MS;
    times.push(from);
    if (zone.offset(from) === zone.offset(from + WEEK_MS)) continue;
    const change = zone.change(from, from + WEEK_MS);
    if (change !== undefined) times.push(change - MINUTE_MS, change);
  }
  return { instants: times.map((time) => new Date(time)), seconds: times.map((time) => zone.offset(time) / 1000) };
}
