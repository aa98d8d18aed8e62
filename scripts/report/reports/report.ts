import type { Organization, Query, Session } from '../session.ts';
import type { Table } from '../table.ts';

export type Section = Readonly<{ table: Table; notes?: readonly string[] }>;

export type Asked = Readonly<{ session: Session; organization: Organization; currency: string | undefined }>;

/** A summary of one organization from a day on. */
export type Report = Readonly<{
  /** For a file: the rows of a ready summary, with all of its columns. */
  rows: (organization: Organization) => Query;
  /** For a terminal; none where there is nothing to show. */
  sections: (asked: Asked) => Promise<readonly Section[]>;
}>;

/** Rows of a ready summary from the first day on; the summary knows in which zone its days are. */
export function summaryRows(view: string, order: string): Report['rows'] {
  const text = `select * from reporting.${view} where organization_id = $1::uuid and day >= $2::date order by ${order}`;
  return ({ id, since }) => ({ text, values: [id, since] });
}

/** A query over rows that carry instants: $1 the organization, $2 the first day, $3 its zone. */
export function query(text: string, { id, since, timezone }: Organization): Query {
  return { text, values: [id, since, timezone] };
}

/** Where a terminal shows the largest ones alone. */
export const SHOWN = 40;

/** What is left out, in a line. */
export function leftOut(all: number, what: string): readonly string[] {
  return all > SHOWN ? [`and ${all - SHOWN} more ${what}; --format csv has all of them`] : [];
}
