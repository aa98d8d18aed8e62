import type { Test } from 'tap';
import { decodeHealthReport } from '../../../engine/context/index.ts';
import { createLogger } from '../../../engine/log.ts';
import { readVerified, type Storage } from '../../../engine/storage/index.ts';
import type { AddJob, JobContext } from '../../../jobs/runner/handler.ts';
import { openServices } from '../../../jobs/runner/services.ts';
import type { TestOrganization } from '../../support/fixtures.ts';
import type { Sql } from '../../support/transitions.ts';
import { jobsConfig } from '../support.ts';

export type Started = Readonly<{
  context: JobContext;
  storage: Storage;
  added: Record<string, unknown>[];
  stop: () => void;
}>;

/** What the jobs of the context are run with. */
export async function openContextJobs(test: Test, sql: Sql): Promise<Started> {
  const services = openServices(await jobsConfig(test, sql.url), createLogger('silent', 'jobs'));
  test.teardown(() => services.close());
  const stopping = new AbortController();
  const added: Record<string, unknown>[] = [];
  const addJob: AddJob = async (name, payload, options) => added.push({ name, ...payload, key: options?.key });
  const context = { ...services, jobId: '1', attempt: 1, addJob, signal: stopping.signal };
  return { context, storage: services.storage, added, stop: () => stopping.abort() };
}

/** The newest report, from its file. */
export async function latestReport(sql: Sql, storage: Storage, org: TestOrganization) {
  const { rows } = await sql.owner.query(
    'select * from app.context_health_reports where organization_id = $1 order by revision desc limit 1',
    [org.organizationId],
  );
  const [row] = rows;
  const file = { key: row.storage_key, size: Number(row.size_bytes), sha256: row.sha256 };
  return { row, report: decodeHealthReport(await readVerified(storage, file)) };
}
