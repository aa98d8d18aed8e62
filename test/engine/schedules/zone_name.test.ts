import t from 'tap';
import { zoneName, zoneOffsets, zonesLike, zonesMeant } from '../../../engine/schedules/index.ts';

t.test('UTC and names of places are taken, old ones too, with their case put right', async (t) => {
  for (const [text, name] of Object.entries({
    UTC: 'UTC',
    utc: 'UTC',
    'Europe/Berlin': 'Europe/Berlin',
    'america/new_york': 'America/New_York',
    'Asia/Calcutta': 'Asia/Calcutta',
    'Asia/Kolkata': 'Asia/Kolkata',
    'US/Pacific': 'US/Pacific',
    'America/Argentina/Buenos_Aires': 'America/Argentina/Buenos_Aires',
    'America/Port-au-Prince': 'America/Port-au-Prince',
    'Etc/GMT+5': 'Etc/GMT+5',
    'Etc/UTC': 'Etc/UTC',
  })) {
    t.equal(zoneName(text), name, text);
  }
  for (const name of Intl.supportedValuesOf('timeZone')) t.equal(zoneName(name), name);
});

t.test('abbreviations, offsets and rules are no names, and what may be meant is named', async (t) => {
  for (const [text, meant] of Object.entries({
    BST: ['Europe/London', 'Asia/Dhaka'],
    ist: ['Asia/Kolkata', 'Asia/Jerusalem', 'Europe/Dublin'],
    EST: ['America/New_York', 'America/Panama'],
    EST5EDT: ['America/New_York'],
    PST8PDT: ['America/Los_Angeles'],
    GMT: ['UTC'],
    Zulu: ['UTC'],
    GB: ['Europe/London'],
    Japan: ['Asia/Tokyo'],
    '+01:00': ['Etc/GMT-1'],
    'UTC-5': ['Etc/GMT+5'],
    '+05:30': [],
    'Mars/Base': [],
    'Mars/Base-3': [],
    'LAMP-3': [],
    'SystemV/EST5': [],
    'right/UTC': [],
    'posix/Europe/Berlin': [],
    'Europe/Berlin ': [],
    Factory: [],
    localtime: [],
    '': [],
  })) {
    t.equal(zoneName(text), undefined, text);
    t.same(zonesMeant(text), meant, text);
    for (const name of meant) t.equal(zoneName(name), name, `${text} → ${name}`);
  }
});

t.test('the offsets of two years hold the minutes around each change', async (t) => {
  const { instants, seconds } = zoneOffsets('Europe/Berlin', new Date('2026-01-01T12:00:30Z'));
  const at = (time: string) => seconds[instants.findIndex((instant) => instant.toISOString() === `${time}:00.000Z`)];
  t.same(
    ['2026-03-29T00:59', '2026-03-29T01:00', '2026-10-25T00:59', '2026-10-25T01:00'].map(at),
    [3600, 7200, 7200, 3600],
  );
  t.same(
    ['2027-03-28T00:59', '2027-03-28T01:00', '2027-10-31T00:59', '2027-10-31T01:00'].map(at),
    [3600, 7200, 7200, 3600],
  );
  t.ok((instants.at(-1) ?? new Date(0)) >= new Date('2027-12-30'));
});

t.test('zones of the same clocks: the one without rules first, then the area’s', async (t) => {
  const now = new Date('2026-12-01T00:00:00Z');
  t.equal(zonesLike('Asia/Tokyo', now).next().value, 'Etc/GMT-9');
  t.equal(zonesLike('America/Regina', now).next().value, 'Etc/GMT+6');
  t.equal(zonesLike('Africa/Abidjan', now).next().value, 'UTC');
  const like = [...zonesLike('Europe/Berlin', now)];
  t.ok(like.includes('Europe/Paris') && !like.includes('Europe/London') && !like.includes('Europe/Berlin'));
  t.same([...zonesLike('Australia/Lord_Howe', now)], []);
});
