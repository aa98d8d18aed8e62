import { type CsvField, csvRecord } from './csv.ts';
import { amount } from './money.ts';
import type { Report } from './reports/report.ts';
import type { Field, Organization, Row, Session } from './session.ts';
import { json } from './text.ts';

const MINOR_UNITS = /_minor_units$/;
const camel = (name: string) => name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());

type Value = Readonly<{ name: string; of: (row: Row) => CsvField['value']; numeric: boolean }>;

/** What a file says: whose row it is, all columns of the summary, and amounts beside their minor units where the currency is said. */
function columns(organization: Organization, fields: readonly Field[], currency: string | undefined): Value[] {
  const { slug } = organization;
  const values: Value[] = [{ name: 'organization', of: () => slug, numeric: false }];
  for (const { name, numeric, boolean } of fields) {
    values.push({ name: camel(name), numeric, of: (row) => (boolean ? row[name] === 't' : (row[name] ?? null)) });
    if (currency === undefined || !MINOR_UNITS.test(name)) continue;
    const of = (row: Row) => (row[name] == null ? null : amount(BigInt(row[name]), currency));
    values.push({ name: camel(name.replace(MINOR_UNITS, '')), numeric: true, of });
  }
  if (currency !== undefined) values.push({ name: 'currency', of: () => currency, numeric: false });
  return values;
}

/** A number goes out with the digits that the database wrote: no float comes between. */
function jsonLine(values: readonly Value[], row: Row): string {
  const members = values.map(({ name, of, numeric }) => {
    const value = of(row);
    return `${json(name)}:${numeric && value !== null ? value : json(value)}`;
  });
  return `{${members.join(',')}}\n`;
}

export type FileOptions = Readonly<{
  session: Session;
  report: Report;
  organizations: readonly Organization[];
  format: 'csv' | 'json';
  currency: string | undefined;
}>;

/** The rows of all organizations, a piece at a time; CSV has one head. */
export async function* fileText(options: FileOptions): AsyncGenerator<string> {
  const { session, report, organizations, format, currency } = options;
  let headed = false;
  for (const organization of organizations) {
    const { fields, rows } = await session.stream(report.rows(organization));
    const values = columns(organization, fields, currency);
    if (format === 'csv' && !headed) yield csvRecord(values.map(({ name }) => ({ value: name, numeric: false })));
    headed = true;
    for await (const row of rows) {
      yield format === 'json'
        ? jsonLine(values, row)
        : csvRecord(values.map(({ of, numeric }) => ({ value: of(row), numeric })));
    }
  }
}
