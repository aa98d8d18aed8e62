import type { DatasetAdapter } from '../dataset.ts';
import { localDay } from '../periods.ts';
import type { Credential, Settings } from './connection.ts';
import { repositorySources } from './repository.ts';
import { readTotals } from './totals.ts';

/** What is open, once a day: what was open earlier cannot be told from what is known of issues today. */
export const inventory: DatasetAdapter<Credential, Settings> = {
  version: 1,
  schemaVersion: 1,
  columns: { day: 'day', open_issues: 'count', open_pulls: 'count' },
  rhythm: { tail: 'midnight' },
  isSnapshot: true,
  discover: repositorySources,
  async *collect(call) {
    const { data, bytes } = await readTotals(call);
    const time = call.now.getTime();
    const { day, start, end } = localDay(call.source.timezone, time);
    yield {
      records: 1,
      bytes,
      facts: [
        {
          key: day,
          effectiveAt: time,
          contentAt: start,
          // A later count of the same day takes its place.
          revision: time,
          values: { day, open_issues: data.openIssues, open_pulls: data.openPulls },
        },
      ],
      cursor: null,
      done: true,
      covered: [{ start, end, state: 'complete' }],
    };
  },
};
