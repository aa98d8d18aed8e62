import { createHash } from 'node:crypto';
import { type FragmentSqlToken, sql } from 'slonik';
import { z } from 'zod';
import { invalid } from './errors.ts';
import { queryInteger } from './query.ts';

export type Pagination = Readonly<{
  cursor: string | null;
  limit: number;
  nextCursor: string | null;
  previousCursor: string | null;
  hasNextPage: boolean;
  hasPreviousPage: boolean;
}>;

/** Of a list with one page. */
export const paginationExample: Pagination = {
  cursor: null,
  limit: 50,
  nextCursor: null,
  previousCursor: null,
  hasNextPage: false,
  hasPreviousPage: false,
};

export const paginationSchema = z
  .object({
    cursor: z.string().nullable().describe('The cursor of the request; null for the first page.'),
    limit: z.int(),
    nextCursor: z.string().nullable(),
    previousCursor: z.string().nullable(),
    hasNextPage: z.boolean(),
    hasPreviousPage: z.boolean(),
  })
  .meta({
    id: 'Pagination',
    description: 'Opaque cursors to the pages after and before this one.',
    examples: [paginationExample],
  });

export const CURSOR_MAX_LENGTH = 2000;

/** The query parameters of a paginated list. */
export function pageQuery(options: { defaultLimit?: number; maxLimit?: number } = {}) {
  return {
    cursor: z
      .string()
      .min(1)
      .max(CURSOR_MAX_LENGTH)
      .optional()
      .describe('`nextCursor` or `previousCursor` of a page with the same sort and filters; otherwise 400.'),
    limit: queryInteger({
      minimum: 1,
      maximum: options.maxLimit ?? 200,
      default: options.defaultLimit ?? 50,
      description: 'Most items in the page. A page of large items may have fewer.',
    }),
  };
}

export type KeyType = 'timestamptz' | 'bigint' | 'integer' | 'text' | 'uuid';

export type Sort = Readonly<{
  /** Part of the cursor: a cursor of another sort is refused. */
  name: string;
  /** The SQL expression, never null (`coalesce` what may be), spelled as in its index. */
  key: FragmentSqlToken;
  type: KeyType;
  direction: 'asc' | 'desc';
}>;

/** The columns that `Keyset.columns` adds to a row. */
export const keyColumns = { cursor_key: z.string(), cursor_id: z.string(), cursor_rows: z.int().optional() };
/** `cursor_rows`: how many rows there were before `Keyset.bounded` cut them. */
type KeyRow = Readonly<{ cursor_key: string; cursor_id: string; cursor_rows?: number | undefined }>;

/** A page ends early once its large columns make up so many bytes; it always has an item. */
const PAGE_BYTES = 4_194_304;

/** About the bytes of a text or jsonb column as text, without unpacking what is stored as it is. */
export function columnBytes(column: FragmentSqlToken): FragmentSqlToken {
  return sql.fragment`case when pg_column_compression(${column}) is null then coalesce(pg_column_size(${column}), 0)
    else octet_length(${column}::text) end`;
}

export type Keyset = Readonly<{
  /** `…, cursor_key, cursor_id` for the select list. */
  columns: FragmentSqlToken;
  /** A condition: after (or before) the cursor. */
  where: FragmentSqlToken;
  /** `order by … limit …`, one row more than the page. */
  orderAndLimit: FragmentSqlToken;
  /** The whole select (with `columns` and `orderAndLimit`), cut where its rows become too large for one response. */
  bounded: (select: FragmentSqlToken) => FragmentSqlToken;
  /** The same for a list behind a SQL function, which seeks and limits by itself; undefined on the first page. */
  position: Readonly<{ key: string; id: string; inclusive: boolean; backward: boolean }> | undefined;
  /** The rows to read: one more than the page. */
  take: number;
  /** Rows of the statement, as they came, to the page. */
  finish<R extends KeyRow, T>(rows: readonly R[], item: (row: R) => T): { data: T[]; pagination: Pagination };
}>;

type Position = Readonly<{
  way: 'next' | 'previous';
  /** True: the row at the position belongs to the page. Only made where a page came out empty. */
  inclusive: boolean;
  key: string;
  id: string;
}>;

const keyFormats: Record<KeyType, RegExp> = {
  // Microseconds that Postgres has a date for: from 1199 BC to the year 33658.
  timestamptz: /^(\d{1,18}|-\d{1,17})$/,
  bigint: /^-?\d{1,18}$/,
  integer: /^-?\d{1,10}$/,
  text: /^[^\0]*$/,
  uuid: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/,
};

const cursorShape = z.tuple([
  z.enum(['n', 'p']),
  z.union([z.literal(0), z.literal(1)]),
  z.string(),
  z.string(),
  z.string(),
]);

/** Ties a cursor to its sort and filters; over the position too, so that an edited cursor does not pass either. */
function digest(context: string, position: readonly unknown[]): string {
  return createHash('sha256')
    .update(JSON.stringify([context, ...position]))
    .digest('base64url')
    .slice(0, 16);
}

function encode(context: string, position: Position): string {
  const parts = [position.way === 'next' ? 'n' : 'p', position.inclusive ? 1 : 0, position.key, position.id] as const;
  return Buffer.from(JSON.stringify([...parts, digest(context, parts)])).toString('base64url');
}

function decode(context: string, cursor: string, type: KeyType): Position {
  const refuse = () =>
    invalid('cursor', 'is not a cursor of this list with this sort and these filters', 'invalid_cursor');
  let parsed: z.output<typeof cursorShape>;
  try {
    parsed = cursorShape.parse(JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8')));
  } catch {
    throw refuse();
  }
  const [way, inclusive, key, id, given] = parsed;
  if (given !== digest(context, [way, inclusive, key, id])) throw refuse();
  if (!keyFormats[type].test(key) || !keyFormats.uuid.test(id)) throw refuse();
  return { way: way === 'n' ? 'next' : 'previous', inclusive: inclusive === 1, key, id };
}

/** Microseconds since 1970 as text: a JavaScript date would cut to milliseconds and lose or repeat rows. */
function keyText(sort: Sort): FragmentSqlToken {
  if (sort.type === 'timestamptz') return sql.fragment`((extract(epoch from ${sort.key}) * 1000000)::bigint)::text`;
  return sql.fragment`(${sort.key})::text`;
}

function keyValue(type: KeyType, key: string): FragmentSqlToken {
  if (type === 'timestamptz') {
    // Intervals multiply in floating point: seconds and microseconds apart stay exact.
    const micros = BigInt(key);
    const seconds = String(micros / 1_000_000n);
    const rest = String(micros % 1_000_000n);
    return sql.fragment`(timestamptz 'epoch' + ${seconds}::bigint * interval '1 second' + ${rest}::bigint * interval '1 microsecond')`;
  }
  if (type === 'bigint') return sql.fragment`${key}::bigint`;
  if (type === 'integer') return sql.fragment`${key}::bigint`;
  if (type === 'uuid') return sql.fragment`${key}::uuid`;
  return sql.fragment`${key}::text`;
}

function comparison(ascending: boolean, inclusive: boolean): FragmentSqlToken {
  if (ascending) return inclusive ? sql.fragment`>=` : sql.fragment`>`;
  return inclusive ? sql.fragment`<=` : sql.fragment`<`;
}

/**
 * A page of a list by row comparison of `(sort key, id)`, in either direction.
 * @param options.list names the list and its tenant; with the filters it decides which cursors fit
 * @throws Problem 400 for a cursor that is broken, or of another list, sort or filter
 */
export function keyset(options: {
  list: string;
  sort: Sort;
  /** The unique tie-breaker, a uuid column. */
  id: FragmentSqlToken;
  filters: Readonly<Record<string, unknown>>;
  cursor: string | undefined;
  limit: number;
  /** For `bounded`: the bytes of a row, of which only what can be large counts. */
  bytes?: FragmentSqlToken;
}): Keyset {
  const { sort, id, cursor, limit, bytes } = options;
  const filters = Object.entries(options.filters)
    .filter(([, value]) => value !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  const context = JSON.stringify([options.list, sort.name, sort.direction, filters]);
  const from = cursor === undefined ? undefined : decode(context, cursor, sort.type);
  const backward = from?.way === 'previous';
  const ascending = (sort.direction === 'asc') !== backward;
  const direction = ascending ? sql.fragment`asc` : sql.fragment`desc`;

  const where = from
    ? sql.fragment`(${sort.key}, ${id}) ${comparison(ascending, from.inclusive)} (${keyValue(sort.type, from.key)}, ${from.id}::uuid)`
    : sql.fragment`true`;

  function cursorAt(way: Position['way'], row: KeyRow | undefined): string | null {
    if (row) return encode(context, { way, inclusive: false, key: row.cursor_key, id: row.cursor_id });
    // An empty page still leads back to where it came from, that row included.
    if (from) return encode(context, { way, inclusive: true, key: from.key, id: from.id });
    return null;
  }

  return {
    columns: sql.fragment`${keyText(sort)} as cursor_key, ${id}::text as cursor_id${bytes ? sql.fragment`, ${bytes} as cursor_bytes` : sql.fragment``}`,
    where,
    orderAndLimit: sql.fragment`order by ${sort.key} ${direction}, ${id} ${direction} limit ${limit + 1}`,
    bounded: (select) => sql.fragment`
      select * from (
        select page.*, sum(page.cursor_bytes) over (rows unbounded preceding) - page.cursor_bytes as bytes_before,
          (count(*) over ())::integer as cursor_rows
        from (${select}) page
      ) cut
      where bytes_before < ${PAGE_BYTES}`,
    position: from && { key: from.key, id: from.id, inclusive: from.inclusive, backward },
    take: limit + 1,
    finish(rows, item) {
      const kept = rows.slice(0, limit);
      const more = (kept[0]?.cursor_rows ?? rows.length) > kept.length;
      if (backward) kept.reverse();
      const hasNextPage = backward || more;
      const hasPreviousPage = backward ? more : from !== undefined;
      return {
        data: kept.map(item),
        pagination: {
          cursor: cursor ?? null,
          limit,
          nextCursor: hasNextPage ? cursorAt('next', kept.at(-1)) : null,
          previousCursor: hasPreviousPage ? cursorAt('previous', kept[0]) : null,
          hasNextPage,
          hasPreviousPage,
        },
      };
    },
  };
}
