import t from 'tap';
import { functionQuery } from '../../../engine/db/function_text.ts';
import { zoneOffsets } from '../../../engine/schedules/index.ts';
import { openSql } from '../../support/transitions.ts';

const sql = await openSql(t);
const now = new Date();

async function has(name: string, { instants, seconds } = zoneOffsets(name, now)): Promise<boolean | undefined> {
  const at = instants.map((instant) => instant.toISOString());
  const { text, values } = functionQuery('timezone_matches', { timezone: name, instants: at, seconds });
  const { rows } = await sql.api.query<{ result: boolean }>(text, values);
  return rows[0]?.result;
}

async function counted(name: string | null): Promise<string | undefined> {
  const { rows } = await sql.owner.query<{ zone: string }>('select app.timezone_or_utc($1) as zone', [name]);
  return rows[0]?.zone;
}

t.test(
  'Intl and Postgres agree on the zones that people live in, old names and offsets without rules',
  async (test) => {
    for (const name of [
      'Europe/Berlin',
      'America/New_York',
      'Asia/Calcutta',
      'Asia/Kolkata',
      'US/Pacific',
      'Africa/Cairo',
      'America/Havana',
      'Australia/Lord_Howe',
      'Asia/Kathmandu',
      'Etc/GMT+5',
      'Etc/UTC',
    ]) {
      test.equal(await has(name), true, name);
      test.equal(await counted(name), name, name);
    }
  },
);

t.test(
  'they are found to differ by abbreviations, by one change, and where Postgres knows no such zone',
  async (test) => {
    for (const name of ['BST', 'IST', 'Mars/Base']) {
      const read = name === 'Mars/Base' ? zoneOffsets('UTC', now) : zoneOffsets(name, now);
      test.equal(await has(name, read), false, name);
    }
    const { instants, seconds } = zoneOffsets('Europe/Berlin', now);
    const change = seconds.findIndex((offset, place) => place > 0 && offset !== seconds[place - 1]);
    test.equal(
      await has('Europe/Berlin', { instants, seconds: seconds.with(change, seconds[change - 1] ?? 0) }),
      false,
    );
  },
);

t.test('what the API takes for no zone counts as UTC', async (test) => {
  for (const name of ['BST', 'IST', 'EST5EDT', 'LAMP-3', 'Mars/Base', 'Mars/Base-3', 'GMT', '+01:00', '', null]) {
    test.equal(await counted(name), 'UTC', String(name));
  }
});
