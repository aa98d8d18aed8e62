import type { Dataset, DatasetAdapter, FactPage } from '../dataset.ts';
import { monthOf } from '../local_days.ts';
import { changedBefore } from './backward.ts';
import type { Credential, Settings } from './connection.ts';
import { changedIssues } from './forward.ts';
import { inventory } from './inventory.ts';
import { ISSUE_COLUMNS, PULL_COLUMNS } from './items.ts';
import { type Collecting, repositorySources } from './repository.ts';
import { allItems } from './scan.ts';

type Adapter = DatasetAdapter<Credential, Settings>;

const DAY_MS = 86_400_000;
const rhythm = { tail: { everySeconds: 900 }, rescan: { everySeconds: 7 * 86_400 }, backfill: true } as const;

/** The month a year ago. */
const yearAgo = ({ now }: Collecting) => Date.parse(monthOf(now.toISOString().slice(0, 10), -12));

// Neither list tells what is gone: that is known by scans alone.

const issues: Adapter = {
  version: 1,
  schemaVersion: 1,
  columns: ISSUE_COLUMNS,
  rhythm,
  discover: repositorySources,
  collect(call): AsyncIterable<FactPage> {
    if (call.mode === 'tail') return changedIssues(call);
    if (call.mode === 'rescan') return allItems(call, 'issues');
    return changedBefore(call, { list: 'issues', until: yearAgo(call) });
  },
};

const pulls: Adapter = {
  version: 1,
  schemaVersion: 1,
  columns: PULL_COLUMNS,
  rhythm,
  discover: repositorySources,
  collect(call): AsyncIterable<FactPage> {
    if (call.mode === 'rescan') return allItems(call, 'pulls');
    // The backfill, which begins about the same time, reads what lies before.
    const until = call.mode === 'tail' ? call.now.getTime() - 7 * DAY_MS : yearAgo(call);
    return changedBefore(call, { list: 'pulls', until });
  },
};

export const datasets: readonly Dataset<Credential, Settings>[] = [
  { key: 'github.issues', scopes: [], adapter: issues },
  { key: 'github.pulls', scopes: [], adapter: pulls },
  { key: 'github.inventory', scopes: [], adapter: inventory },
];
