import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from 'pg';

const PAUSE_MS = 500;

/**
 * Whether the row `r` of pg_roles is the login of an analyst. An operator that is no superuser is a member of runner_analyst too,
 * for it hands that on; it also makes roles, and becomes those that own the database's contents, which no analyst does.
 */
export const IS_ANALYST = `(
  r.rolcanlogin and not r.rolsuper and not r.rolcreaterole
  and exists (select from pg_auth_members m where m.member = r.oid and m.roleid = to_regrole('runner_analyst'))
  and not exists (select from pg_roles o where o.rolname in ('runner_owner', 'runner_scoped', 'runner_global', 'runner_report',
    'runner_api', 'runner_jobs', 'runner_admin') and pg_has_role(r.oid, o.oid, 'member')))`;

/** Sessions of analysts that the backend waits for, directly. */
const BLOCKING = `
  select a.pid, a.usename as name, pg_terminate_backend(a.pid) as ended
  from unnest(pg_blocking_pids($1)) b(pid)
  join pg_stat_activity a on a.pid = b.pid
  join pg_roles r on r.oid = a.usesysid
  where ${IS_ANALYST}`;

/**
 * Ends sessions of analysts that a migration waits for. An open transaction that has read a view locks its tables, and a
 * migration that waits for one of them holds up everything behind it; what time limits an analyst has, it may lift itself.
 * `backend` is the migration's; `open` makes the connection that looks, only once it has lasted.
 * @returns ends the looking
 */
export function endBlockingAnalysts(
  backend: number,
  open: () => Promise<Client>,
  log: (line: string) => void,
): () => Promise<void> {
  const stop = new AbortController();
  async function look(): Promise<void> {
    const pause = () => sleep(PAUSE_MS, undefined, { signal: stop.signal });
    await pause();
    const client = await open();
    try {
      for (; ; await pause()) {
        const { rows } = await client.query<{ name: string }>(BLOCKING, [backend]);
        for (const { name } of rows) log(`ended a session of the analyst ${name}, which held up the migration`);
      }
    } finally {
      await client.end();
    }
  }
  const looking = look().catch((error: Error) => {
    // Without it the migration waits as long as the analyst likes.
    if (!stop.signal.aborted)
      log(`sessions of analysts are not ended, should they hold up the migration: ${error.message}`);
  });
  return async () => {
    stop.abort();
    await looking;
  };
}
