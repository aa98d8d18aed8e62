import type pg from 'pg';
import { type PoolOptions, roleUrl } from '../../engine/db/pool.ts';
import type { TearDown } from './database.ts';
import { takeDatabase } from './handed_on.ts';

/** A database, and connections with the rights of each role: transitions are tested without any process. */
export type Sql = Readonly<{
  url: string;
  /** As superuser, above row security: to prepare and to inspect. */
  owner: pg.Pool;
  api: pg.Pool;
  jobs: pg.Pool;
  admin: pg.Pool;
}>;

/** A migrated database for one test file, with nothing in it. */
export async function openSql(t: TearDown): Promise<Sql> {
  const { url, owner, pool } = await takeDatabase(t);
  const as = (role: PoolOptions['role'], max: number) => pool(roleUrl(url, { role }), max);
  return { url, owner, api: as('runner_api', 24), jobs: as('runner_jobs', 4), admin: as('runner_admin', 4) };
}
