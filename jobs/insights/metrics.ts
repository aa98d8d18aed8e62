import { Gauge, type Registry } from 'prom-client';
import { z } from 'zod';
import { call } from '../../engine/db/call.ts';
import type { Database } from '../../engine/db/database.ts';
import { INSIGHT_SOURCE_STATUSES } from '../../engine/insight_states.ts';
import { cachedRead } from '../../engine/monitoring/cached_read.ts';

const totalsSchema = z.object({
  sources: z.record(z.enum(INSIGHT_SOURCE_STATUSES), z.int()),
  failing: z.int(),
  overdueSeconds: z.number(),
});

/** Shows how collecting goes; asked for when the metrics are. */
export function watchInsights(registry: Registry, db: Database): void {
  const read = cachedRead(() => call(db, 'insight_totals', {}, totalsSchema), undefined);
  const sources: Gauge<'status'> = new Gauge({
    name: 'runner_insight_sources',
    help: 'Sources of facts by status, over all organizations, of which 10,000 are looked at.',
    labelNames: ['status'],
    registers: [registry],
    async collect() {
      sources.reset();
      for (const [status, count] of Object.entries((await read())?.sources ?? {})) sources.set({ status }, count);
    },
  });
  const gauge = (name: string, help: string, value: (totals: z.output<typeof totalsSchema>) => number) => {
    const metric: Gauge = new Gauge({
      name,
      help,
      registers: [registry],
      async collect() {
        const totals = await read();
        metric.remove();
        if (totals) metric.set(value(totals));
      },
    });
  };
  gauge(
    'runner_insight_connectors_failing',
    'Connections whose last attempt to collect failed, of whatever, over all organizations; 10,000 are looked at.',
    ({ failing }) => failing,
  );
  gauge(
    'runner_insight_overdue_seconds',
    'How long the connection has waited that is to be collected from since longest; 0 where none waits.',
    ({ overdueSeconds }) => overdueSeconds,
  );
}
