import type { Dataset, DatasetAdapter, FactPage } from '../dataset.ts';
import { backfillStart, DAY_MS } from '../periods.ts';
import { changedBefore } from './backward.ts';
import type { Credential, Settings } from './connection.ts';
import { changedIssues } from './forward.ts';
import { inventory } from './inventory.ts';
import { ISSUE_COLUMNS, PULL_COLUMNS } from './items.ts';
import { repositorySources } from './repository.ts';
import { allItems } from './scan.ts';

type Adapter = DatasetAdapter<Credential, Settings>;

const rhythm = { tail: { everySeconds: 900 }, rescan: { everySeconds: 7 * 86_400 }, backfill: true } as const;

// Neither list tells what is gone: that is known by scans alone.

const issues: Adapter = {
  version: 1,
  schemaVersion: 1,
  columns: ISSUE_COLUMNS,
  rhythm,
  lasting: ['since', 'until', 'seen'],
  discover: repositorySources,
  collect(call): AsyncIterable<FactPage> {
    if (call.mode === 'tail') return changedIssues(call);
    if (call.mode === 'rescan') return allItems(call, 'issues');
    return changedBefore(call, { list: 'issues', until: backfillStart(call.now.getTime()) });
  },
};

const pulls: Adapter = {
  version: 1,
  schemaVersion: 1,
  columns: PULL_COLUMNS,
  rhythm,
  lasting: ['since', 'until', 'seen'],
  discover: repositorySources,
  collect(call): AsyncIterable<FactPage> {
    if (call.mode === 'rescan') return allItems(call, 'pulls');
    // The backfill, which begins about the same time, reads what lies before.
    const now = call.now.getTime();
    const until = call.mode === 'tail' ? now - 7 * DAY_MS : backfillStart(now);
    return changedBefore(call, { list: 'pulls', until });
  },
};

export const datasets: readonly Dataset<Credential, Settings>[] = [
  { key: 'github.issues', scopes: [], adapter: issues },
  { key: 'github.pulls', scopes: [], adapter: pulls },
  { key: 'github.inventory', scopes: [], adapter: inventory },
];
