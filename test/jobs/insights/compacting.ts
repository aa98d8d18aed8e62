import type { Test } from 'tap';
import { createLogger } from '../../../engine/log.ts';
import type { Storage } from '../../../engine/storage/index.ts';
import { insightsCompact } from '../../../jobs/insights/compact.ts';
import type { JobContext } from '../../../jobs/runner/handler.ts';
import { openServices } from '../../../jobs/runner/services.ts';
import type { Month } from '../../support/compaction_fixtures.ts';
import { createTestOrganization } from '../../support/fixtures.ts';
import { createCollected } from '../../support/insight_fixtures.ts';
import { publishAll, seenOf, type Told, tellings } from '../../support/stored_facts.ts';
import type { Sql } from '../../support/transitions.ts';
import { collectLog, jobsConfig } from '../support.ts';

/** The job that merges files of facts, run by the test itself. */
export async function openCompactor(t: Pick<Test, 'teardown'>, sql: Sql) {
  const { logged, write } = collectLog();
  const config = await jobsConfig(t, sql.url);
  const services = openServices(config, createLogger('debug', 'jobs', { destination: { write } }));
  t.teardown(() => services.close());
  const { storage } = services;
  const rows = async (text: string, ...values: unknown[]) => (await sql.owner.query(text, values)).rows;
  const context = (change: Partial<JobContext> = {}): JobContext => {
    const { signal } = new AbortController();
    const addJob = () => Promise.reject(new Error('it adds no job'));
    return { ...services, jobId: '1', attempt: 1, addJob, signal, ...change };
  };
  return {
    config,
    logged,
    storage,
    rows,
    context,
    run: (change: Partial<JobContext> = {}) => insightsCompact({}, context(change)),
    /** How often it came to what, by now. */
    async outcomes() {
      const { values } = await services.metrics.insightCompactions.get();
      return Object.fromEntries(values.map(({ labels, value }) => [labels.outcome, value]));
    },
    seen: (month: Month, revision?: number) => seenOf(sql, storage, month, revision),
    rowOf: async ({ sourceId }: Month) =>
      (await rows('select * from app.insight_compactions where source_id = $1', sourceId))[0],
    /** A month, by default of sixteen files. */
    async world(told: readonly (readonly Told[])[] = tellings(16)) {
      const org = await createTestOrganization(sql);
      const place = await createCollected(sql, org);
      return { place, month: await publishAll(sql, storage, place, told) };
    },
    /** A storage whose `put` does something before or after. */
    putting: (put: Storage['put']): Storage => ({ ...storage, put }),
    objects: async ({ organizationId, sourceId }: Month) =>
      (await storage.list(`organizations/${organizationId}/insights/${sourceId}/`)).objects.length,
  };
}
