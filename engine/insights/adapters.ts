import type { Dataset, DatasetAdapter } from '../providers/dataset.ts';
import { providers } from '../providers/index.ts';
import { firstDueSeconds } from './rhythm.ts';

export type Collected = Dataset & Readonly<{ adapter: DatasetAdapter }>;

/** The datasets that this version collects, by provider. */
export function collectedOf(provider: string): readonly Collected[] {
  return (providers.get(provider)?.datasets ?? []).flatMap(({ adapter, ...dataset }) =>
    adapter ? [{ ...dataset, adapter }] : [],
  );
}

export function adapterOf(provider: string, dataset: string): DatasetAdapter | undefined {
  return collectedOf(provider).find(({ key }) => key === dataset)?.adapter;
}

/** What SQL needs to know of an adapter: `modes` are those of a source that begins. */
export function adapterFacts({ version, schemaVersion, rhythm }: DatasetAdapter) {
  const modes = [
    { mode: 'tail', dueInSeconds: 0 },
    ...(rhythm.backfill ? [{ mode: 'backfill', dueInSeconds: 0 }] : []),
    ...(rhythm.rescan ? [{ mode: 'rescan', dueInSeconds: firstDueSeconds(rhythm.rescan) }] : []),
  ];
  return { adapter: version, schema: schemaVersion, modes };
}

/** Those of all providers, by provider and dataset, as `insight_unit_claim` takes them. */
export const knownAdapters: Readonly<Record<string, Readonly<Record<string, unknown>>>> = Object.fromEntries(
  [...providers.keys()].flatMap((provider) => {
    const datasets = collectedOf(provider).map(({ key, adapter }) => [key, adapterFacts(adapter)] as const);
    return datasets.length > 0 ? [[provider, Object.fromEntries(datasets)] as const] : [];
  }),
);
