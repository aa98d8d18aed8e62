import { type Connection, type JsonObject, type Sql, transition } from '../../support/transitions.ts';

export const FIRST_SECONDS = 600;
export const LONGEST_SECONDS = 3_600;

export const claim = (sql: Sql, connection: Connection = sql.jobs): Promise<JsonObject> =>
  transition(connection, 'currency_rates_claim', { seconds: 60 });

/** A claim that has to succeed: its fence. */
export async function claimed(sql: Sql): Promise<number> {
  const { claimed: isClaimed, fence } = await claim(sql);
  if (isClaimed !== true) throw new Error('somebody has the lease, or nothing is due');
  return Number(fence);
}

type Day = Readonly<{ day: string; rates: Readonly<Record<string, string>> }>;

export function store(
  sql: Sql,
  fence: number,
  days: readonly Day[],
  options: Readonly<{ isHistory?: boolean; dueAt?: Date | null; connection?: Connection }> = {},
): Promise<JsonObject> {
  const { isHistory = true, dueAt = new Date(Date.now() + 3_600_000), connection = sql.jobs } = options;
  return transition(connection, 'currency_rates_store', {
    fence,
    days,
    isHistory,
    dueAt: dueAt?.toISOString() ?? null,
  });
}

export function fail(sql: Sql, fence: number, code = 'unreachable', notBefore?: Date): Promise<JsonObject> {
  return transition(sql.jobs, 'currency_rates_fail', {
    fence,
    errorCode: code,
    notBefore: notBefore?.toISOString(),
    firstSeconds: FIRST_SECONDS,
    longestSeconds: LONGEST_SECONDS,
  });
}

export async function source(sql: Sql): Promise<Readonly<Record<string, unknown>>> {
  const { rows } = await sql.owner.query(
    `select *, newest_day::text as newest_day, due_at <= clock_timestamp() as due from app.currency_rate_sources`,
  );
  return rows[0];
}

/** Day, currency and rate of each row, with all digits. */
export async function rates(sql: Sql): Promise<readonly string[]> {
  const { rows } = await sql.owner.query<{ text: string }>(
    `select concat_ws(' ', day, currency, rate) as text from app.currency_rates order by day, currency`,
  );
  return rows.map(({ text }) => text);
}

/** Nothing is known, and everything is due. */
export async function reset(sql: Sql): Promise<void> {
  await sql.owner.query(`delete from app.currency_rates`);
  await sql.owner.query(
    `update app.currency_rate_sources set due_at = now(), lease_expires_at = null, newest_day = null, history_loaded_at = null,
       looked_at = null, failure_count = 0, error_code = null`,
  );
}

export const endLease = (sql: Sql) =>
  sql.owner.query(`update app.currency_rate_sources set lease_expires_at = clock_timestamp()`);
export const makeDue = (sql: Sql) => sql.owner.query(`update app.currency_rate_sources set due_at = clock_timestamp()`);
