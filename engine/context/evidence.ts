import type { Entry } from './document.ts';

const UUID = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}';
const BARE = new RegExp(`^(?:source:)?(${UUID})$`, 'i');
const LOGICAL = new RegExp(`^org://(${UUID})/context/sources/(${UUID})$`, 'i');

/** What a piece of evidence names: a source, something of another organization, or nothing that we keep. */
export function citation(organizationId: string, evidence: string): { sourceId: string } | 'foreign' | 'free' {
  const bare = BARE.exec(evidence)?.[1];
  if (bare !== undefined) return { sourceId: bare.toLowerCase() };
  const [, organization, source] = LOGICAL.exec(evidence) ?? [];
  if (organization?.toLowerCase() === organizationId && source !== undefined) return { sourceId: source.toLowerCase() };
  return /^org:/i.test(evidence) ? 'foreign' : 'free';
}

/** The sources that the entries cite, each once, in order. */
export function citedSources(organizationId: string, entries: readonly Entry[]): string[] {
  const cited = entries.flatMap(({ evidence }) => evidence.map((one) => citation(organizationId, one)));
  return [...new Set(cited.flatMap((one) => (typeof one === 'object' ? [one.sourceId] : [])))];
}

/** The keys of entries that cite what is not this organization's. */
export function foreignCitations(organizationId: string, entries: readonly Entry[]): string[] {
  const foreign = (entry: Entry) => entry.evidence.some((one) => citation(organizationId, one) === 'foreign');
  return entries.filter(foreign).map(({ key }) => key);
}
