import {
  complete,
  type Onboarding,
  placeOf,
  putDisposition,
  putSource,
  step,
} from '../../support/onboarding_fixtures.ts';
import type { Sql } from '../../support/transitions.ts';

/** Each operation, as it is permitted by its generation and digest. */
export const operationsOn = (sql: Sql): Readonly<Record<string, (o: Onboarding) => Promise<unknown>>> => ({
  discard: (o) => step(sql.api, placeOf(o), 'discard'),
  setup: (o) =>
    step(sql.api, placeOf(o), 'setup_update', {
      expectedGeneration: o.generation,
      patch: { summary: 'Lamps' },
    }),
  disposition: (o) => putDisposition(sql, o, 'crm', 'connect_later'),
  put: (o) => putSource(sql.api, placeOf(o)),
  start: (o) => step(sql.api, placeOf(o), 'start'),
  retry: (o) => step(sql.api, placeOf(o), 'research_retry', { expectedGeneration: o.generation }),
  complete: (o) => complete(sql.api, placeOf(o), o),
});
