import pg from 'pg';
import { z } from 'zod';
import { operatorClient } from '../database_url.ts';
import { firstDay, type Since } from './since.ts';

/** What a person can mend, in one line. */
export class ReportError extends Error {
  override name = 'ReportError';
}

/** As long as an analyst's own login may take for one statement. */
const STATEMENT_TIMEOUT_MS = 60_000;
const FETCH = 1_000;

/** A row as the database writes it: numbers keep all their digits. */
export type Row = Readonly<Record<string, string | null>>;
export type Field = Readonly<{ name: string; numeric: boolean; boolean: boolean }>;

const NUMBERS: readonly number[] = [
  pg.types.builtins.INT4,
  pg.types.builtins.INT8,
  pg.types.builtins.NUMERIC,
  pg.types.builtins.FLOAT8,
];

/** No number becomes a float, and no date an instant; instants by ISO 8601, with the microseconds that a Date would lose. */
function asText(type: number): (value: string) => string {
  if (type !== pg.types.builtins.TIMESTAMPTZ) return (value) => value;
  return (value) => value.replace(' ', 'T').replace(/\+00$/, 'Z');
}

export type Query = Readonly<{ text: string; values: readonly unknown[] }>;

export type Session = Readonly<{
  rows: (query: Query) => Promise<readonly Row[]>;
  /** The same, read piece by piece: the fields first, then the rows. */
  stream: (query: Query) => Promise<{ fields: readonly Field[]; rows: AsyncIterable<Row> }>;
  end: () => Promise<void>;
}>;

/**
 * Connects as what can only read the views of schema reporting. Which organizations these show is the login's: an operator's all,
 * an analyst's those that it was given.
 * @throws ReportError, NoDatabaseError
 */
export async function openSession(url: string): Promise<Session> {
  const client = await operatorClient(url, {
    application_name: 'business-runner report',
    types: { getTypeParser: asText } as pg.CustomTypesConfig,
  });
  try {
    await client.query(`set role runner_analyst; set default_transaction_read_only = on; set timezone = 'UTC';
      set datestyle = 'ISO'; set statement_timeout = ${STATEMENT_TIMEOUT_MS}; set search_path = pg_catalog`);
  } catch (error) {
    await client.end();
    throw new ReportError(`this login may not read the reporting views: ${(error as Error).message}`);
  }
  const query = async (text: string, values: readonly unknown[] = []) => {
    try {
      return await client.query<Row>(text, [...values]);
    } catch (error) {
      throw new ReportError(`the database refused: ${(error as Error).message}`);
    }
  };
  return {
    rows: async ({ text, values }) => (await query(text, values)).rows,
    async stream({ text, values }) {
      await query('begin');
      await query(`declare report no scroll cursor for ${text}`, values);
      const first = await query(`fetch ${FETCH} from report`);
      async function* rows() {
        for (let page = first; page.rows.length > 0; page = await query(`fetch ${FETCH} from report`)) yield* page.rows;
        await query('commit');
      }
      const fields = first.fields.map(({ name, dataTypeID }) => {
        return { name, numeric: NUMBERS.includes(dataTypeID), boolean: dataTypeID === pg.types.builtins.BOOL };
      });
      return { fields, rows: rows() };
    },
    end: () => client.end(),
  };
}

const organizationRow = z.object({
  organization_id: z.string(),
  slug: z.string(),
  name: z.string(),
  timezone: z.string(),
  today: z.string(),
});
export type Organization = Readonly<{
  id: string;
  slug: string;
  name: string;
  timezone: string;
  today: string;
  since: string;
}>;

/**
 * The organizations that are asked for, by name; all that the login reads, when none is. Each with its own today.
 * @throws ReportError when one is not there, or is not this login's to read: which of the two is not said
 */
export async function findOrganizations(
  session: Session,
  refs: readonly string[],
  since: Since,
): Promise<readonly Organization[]> {
  const wanted = refs.map((ref) => ref.toLowerCase());
  const found = await session.rows({
    // Which day it is there the database says, as it says in the summaries which day it was.
    text: `select o.organization_id, o.slug, o.name, o.timezone, (now() at time zone o.timezone)::date as today
      from reporting.organizations o
      where cardinality($1::text[]) = 0 or o.organization_id::text = any ($1) or o.slug = any ($1)
      order by o.name, o.organization_id`,
    values: [wanted],
  });
  const organizations = found.map((row) => {
    const { organization_id: id, slug, name, timezone, today } = organizationRow.parse(row);
    return { id, slug, name, timezone, today, since: firstDay(since, today) };
  });
  const missing = wanted.find((ref) => !organizations.some(({ id, slug }) => id === ref || slug === ref));
  if (missing !== undefined) throw new ReportError(`there is no organization ${missing} that this login may read`);
  return organizations;
}
