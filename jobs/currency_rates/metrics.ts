import { Gauge, type Registry } from 'prom-client';
import { sql } from 'slonik';
import { z } from 'zod';
import type { Database } from '../../engine/db/database.ts';
import { cachedRead } from '../../engine/monitoring/cached_read.ts';

const rowSchema = z.object({ failures: z.int(), age: z.number().nullable() });

/** Shows how old the rates of currencies are; asked for when the metrics are. */
export function watchCurrencyRates(registry: Registry, db: Database): void {
  const read = cachedRead(
    () =>
      db.maybeOne(sql.type(rowSchema)`
        select failure_count as failures,
          extract(epoch from now() - newest_day::timestamp at time zone 'UTC')::float8 as age
        from app.currency_rate_sources`),
    null,
  );
  const age: Gauge = new Gauge({
    name: 'runner_currency_rates_age_seconds',
    help: 'Time since the newest day that has reference rates of currencies began, in UTC; none while there are no rates.',
    registers: [registry],
    async collect() {
      const row = await read();
      age.remove();
      if (row?.age != null) age.set(row.age);
    },
  });
  const failures: Gauge = new Gauge({
    name: 'runner_currency_rates_failures',
    help: 'How often in a row the reference rates of currencies could not be read.',
    registers: [registry],
    async collect() {
      const row = await read();
      if (row) failures.set(row.failures);
    },
  });
}
