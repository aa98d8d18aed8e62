import type { ContextScope, DocumentKind, Entry } from './document.ts';
import { citation } from './evidence.ts';
import type { Finding } from './health_report.ts';

/** A published document: its entries, or why they cannot be read. */
export type AssessedDocument = Readonly<{
  scope: ContextScope;
  path: string;
  kind: DocumentKind;
  content: { entries: readonly Entry[] } | { issue: string };
}>;

export type AssessedSource = Readonly<{
  id: string;
  fileName: string;
  status: 'stored' | 'ingested' | 'failed';
  createdAt: Date;
  /** Why it failed. */
  problem: string | null;
}>;

/** What an organization should have in writing. */
const WANTED: readonly DocumentKind[] = ['facts', 'strategy', 'processes'];
const STALE_AFTER_DAYS = 180;
const DAY_MS = 86_400_000;
/** Of one report; the rest is counted. */
const MAX_FINDINGS = 500;
const ORDER = ['critical', 'warning', 'info'];

type Place = Partial<Pick<Finding, 'scope' | 'path' | 'entryKey' | 'sourceId'>>;

function finding(severity: Finding['severity'], code: string, place: Place, message: string): Finding {
  return { code, severity, scope: null, path: null, entryKey: null, sourceId: null, ...place, message };
}

function completeness(documents: readonly AssessedDocument[], departments: readonly string[]): Finding[] {
  const kinds = new Set(documents.filter(({ scope }) => scope === 'organization').map(({ kind }) => kind));
  const scopes = new Set<string>(documents.map(({ scope }) => scope));
  return [
    ...WANTED.filter((kind) => !kinds.has(kind)).map((kind) =>
      finding(
        'warning',
        'kind_missing',
        { scope: 'organization' },
        `The organization has no document of the kind ${kind}: promote one.`,
      ),
    ),
    ...departments
      .filter((department) => !scopes.has(department))
      .map((department) =>
        finding(
          'info',
          'scope_missing',
          { scope: department },
          `The department ${department} is enabled and has no context of its own.`,
        ),
      ),
  ];
}

function ofEntry(kind: DocumentKind, entry: Entry, place: Place): Finding[] {
  const found: Finding[] = [];
  const says = entry.value !== null || entry.notes !== null || entry.steps.length > 0;
  if (kind === 'processes' ? entry.steps.length === 0 : !says) {
    const what = kind === 'processes' ? 'no steps' : 'neither value nor notes';
    found.push(finding('info', 'entry_incomplete', place, `The entry has ${what}: complete it, or leave it out.`));
  }
  if (kind === 'facts' && entry.evidence.length === 0) {
    found.push(finding('warning', 'evidence_missing', place, 'The fact cites no evidence: name what grounds it.'));
  }
  return found;
}

function ofEvidence(source: AssessedSource | undefined, sourceId: string, place: Place, now: Date): Finding[] {
  const at = { ...place, sourceId };
  if (source?.status !== 'ingested') {
    const what = source ? `is ${source.status}` : 'is not there';
    const message = `The entry cites a source that ${what} and grounds nothing: cite another one.`;
    return [finding('warning', 'evidence_unusable', at, message)];
  }
  if (now.getTime() - source.createdAt.getTime() < STALE_AFTER_DAYS * DAY_MS) return [];
  const message = `The evidence is older than ${STALE_AFTER_DAYS} days: look whether it still holds.`;
  return [finding('info', 'evidence_stale', at, message)];
}

function ofDocument(
  organizationId: string,
  document: AssessedDocument,
  sources: ReadonlyMap<string, AssessedSource>,
  now: Date,
): Finding[] {
  const { scope, path, kind, content } = document;
  if ('issue' in content) {
    const message = `The document cannot be read, it ${content.issue}: promote it again.`;
    return [finding('critical', 'document_unreadable', { scope, path }, message)];
  }
  if (content.entries.length === 0) {
    return [finding('info', 'document_empty', { scope, path }, 'The document has no entries.')];
  }
  return content.entries.flatMap((entry) => {
    const place = { scope, path, entryKey: entry.key };
    const cited = entry.evidence.map((one) => citation(organizationId, one));
    return [
      ...ofEntry(kind, entry, place),
      ...cited.flatMap((one) =>
        typeof one === 'object' ? ofEvidence(sources.get(one.sourceId), one.sourceId, place, now) : [],
      ),
    ];
  });
}

/** What is wrong with the published context and its sources; the worst first, a bounded list. */
export function assessContext(given: {
  organizationId: string;
  /** The enabled ones. */
  departments: readonly string[];
  documents: readonly AssessedDocument[];
  sources: ReadonlyMap<string, AssessedSource>;
  now: Date;
}): Finding[] {
  const { organizationId, departments, documents, sources, now } = given;
  const failed = [...sources.values()].filter(({ status }) => status === 'failed');
  const found = [
    ...completeness(documents, departments),
    ...documents.flatMap((document) => ofDocument(organizationId, document, sources, now)),
    ...failed.map(({ id, fileName, problem }) =>
      finding(
        'warning',
        'source_failed',
        { sourceId: id },
        `The source ${fileName} cannot be used${problem === null ? '' : `, it ${problem}`}: provide it again.`,
      ),
    ),
  ];
  found.sort((a, b) => ORDER.indexOf(a.severity) - ORDER.indexOf(b.severity));
  const left = found.length - MAX_FINDINGS;
  if (left <= 0) return found;
  const more = finding('info', 'more_findings', {}, `There are ${left} findings more: solve these first.`);
  return [...found.slice(0, MAX_FINDINGS), more];
}
