import {
  type ContextScope,
  DocumentError,
  type DocumentKind,
  type Entry,
  encodeDocument,
  type StoredDocument,
  storeDocument,
} from '../context/index.ts';
import { checkVerified, type RecordedBytes, readVerified, type Storage, StorageBrokenError } from '../storage/index.ts';
import type { ReviewSummary } from './review.ts';

/** What is said of a text source in the context; the whole of it is the source. */
const EXCERPT_CHARACTERS = 4_000;
/** Longer ones are not quoted. */
const READ_BYTES = 1_048_576;
/** Of the person who confirmed the review. */
const CONFIRMED = 'Confirmed by the owner in the onboarding';

const TEXT = /^text\/|json|yaml|toml|xml/;

/** Where the bytes of a source lie. */
export type SourceBytes = RecordedBytes & Readonly<{ id: string; mediaType: string }>;

/** The documents of one scope, as `app.onboarding_complete` takes them. */
export type ScopeDocuments = Readonly<{ scope: ContextScope; documents: readonly StoredDocument[] }>;

/** A source whose bytes are not (any more) what was reviewed. */
export type BrokenSource = Readonly<{ id: string; reason: StorageBrokenError['reason'] }>;

/** Nothing was stored: the context would cite what nobody can read. */
export class BrokenSourcesError extends Error {
  override name = 'BrokenSourcesError';
  readonly sources: readonly BrokenSource[];
  constructor(sources: readonly BrokenSource[]) {
    super(`sources of the review are broken: ${sources.length}`);
    this.sources = sources;
  }
}

type Reading = Readonly<{ storage: Storage; bytes: ReadonlyMap<string, SourceBytes>; signal: AbortSignal }>;

function entry(key: string, fields: Partial<Entry>): Entry {
  return { key, title: null, value: null, status: null, notes: null, evidence: [], steps: [], ...fields };
}

function facts({ setup, integrations, findings }: ReviewSummary): Entry[] {
  const said: readonly (readonly [key: string, title: string, value: string | null])[] = [
    ['name', 'Name', setup.name],
    ['website', 'Website', setup.website],
    ['timezone', 'Time zone', setup.timezone],
    ['default-currency', 'Currency', setup.defaultCurrency],
    ['departments', 'Departments', setup.departments.join(', ') || 'none'],
    ['summary', 'What it is about', setup.summary],
  ];
  return [
    ...said
      .filter(([, , value]) => value !== null)
      .map(([key, title, value]) => entry(key, { title, value, evidence: [CONFIRMED] })),
    ...integrations.map(({ integrationKey, disposition, departments }) =>
      entry(`integration-${integrationKey}`, {
        title: `Integration ${integrationKey}`,
        value: disposition,
        notes: departments.length > 0 ? `For ${departments.join(', ')}` : null,
        evidence: [CONFIRMED],
      }),
    ),
    ...findings.map(({ id, claim, evidence }) =>
      entry(`finding-${id}`, { title: 'Found by the research', value: claim, evidence }),
    ),
  ];
}

/**
 * The beginning of a text source, or why there is none. All bytes are verified, those that are not quoted too.
 * @throws StorageBrokenError, StorageUnavailableError
 */
async function excerpt({ storage, bytes, signal }: Reading, id: string): Promise<Partial<Entry>> {
  const file = bytes.get(id);
  // It was deleted since: the completion finds another review.
  if (!file) return {};
  if (!TEXT.test(file.mediaType) || file.size > READ_BYTES) {
    await checkVerified(storage, file, { signal });
    const why = TEXT.test(file.mediaType) ? 'Too long to be quoted' : 'No text';
    return { notes: `${why}: read the source itself.` };
  }
  const text = (await readVerified(storage, file, signal)).toString('utf8');
  if (text.length <= EXCERPT_CHARACTERS) return { value: text };
  const notes = `The first ${EXCERPT_CHARACTERS} characters: the source itself has all of them.`;
  return { value: text.slice(0, EXCERPT_CHARACTERS).toWellFormed(), notes };
}

/**
 * The text of a page as the review has it. Its bytes are verified too: they are what is cited.
 * @throws StorageBrokenError, StorageUnavailableError
 */
async function pageText(
  { storage, bytes, signal }: Reading,
  id: string,
  { text, excerpt: said, url }: NonNullable<Citable['page']>,
): Promise<Partial<Entry>> {
  const file = bytes.get(id);
  if (!file) return {};
  await checkVerified(storage, file, { signal });
  const from = url === undefined ? '' : `Read at ${url}`.slice(0, 2_000).toWellFormed();
  return text === '' ? { notes: `${said} ${from}`.trim() } : { value: text, notes: from || null };
}

/** What each usable source says, by its scope. @throws BrokenSourcesError that names all that are broken */
async function notesByScope(summary: ReviewSummary, reading: Reading): Promise<Map<ContextScope, Entry[]>> {
  const scopes = new Map<ContextScope, Entry[]>([['organization', []]]);
  const broken: BrokenSource[] = [];
  for (const { id, title, scope, page } of citable(summary)) {
    try {
      const held = scopes.get(scope) ?? [];
      const said = page ? await pageText(reading, id, page) : await excerpt(reading, id);
      held.push(entry(`source-${id}`, { title: title.slice(0, 500), evidence: [id], ...said }));
      scopes.set(scope, held);
    } catch (error) {
      if (!(error instanceof StorageBrokenError)) throw error;
      broken.push({ id, reason: error.reason });
    }
  }
  if (broken.length > 0) throw new BrokenSourcesError(broken);
  return scopes;
}

/** `page`: what the review, and so its owner, says of a page; its markup is never quoted. */
type Citable = Readonly<{
  id: string;
  title: string;
  scope: ContextScope;
  page?: Readonly<{ text: string; excerpt: string; url: string | undefined }>;
}>;

function citable({ sources, evidence }: ReviewSummary): Citable[] {
  const put = sources.filter(({ usable }) => usable);
  const read = evidence.filter(({ usable }) => usable);
  return [
    ...put.map(
      ({ id, fileName, department }): Citable => ({ id, title: fileName, scope: department ?? 'organization' }),
    ),
    ...read.map(({ id, title, urls, text, excerpt }): Citable => {
      return { id, title, scope: 'organization', page: { text, excerpt, url: urls[0] } };
    }),
  ];
}

/** Documents that hold the entries in their order, as many as their size asks for: `facts.json`, `facts-2.json`, … */
function documentsOf(kind: DocumentKind, name: string, entries: readonly Entry[]) {
  const parts: Entry[][] = [];
  let part: Entry[] = [];
  for (const one of entries) {
    if (!fits([...part, one])) {
      parts.push(part);
      part = [];
    }
    part.push(one);
  }
  if (part.length > 0) parts.push(part);
  return parts.map((held, index) => ({
    kind,
    path: index === 0 ? `${name}.json` : `${name}-${index + 1}.json`,
    entries: held,
  }));
}

function fits(entries: readonly Entry[]): boolean {
  try {
    encodeDocument(entries);
    return true;
  } catch (error) {
    if (error instanceof DocumentError) return false;
    throw error;
  }
}

/**
 * Stores the documents of the first context revision: facts of setup, integrations and findings, and notes of what each
 * source says, in the scope that it was given for. Made of the confirmed review alone.
 * @throws BrokenSourcesError, StorageUnavailableError, or the signal's reason
 */
export async function storeFirstRevision(
  organizationId: string,
  summary: ReviewSummary,
  reading: Reading,
): Promise<ScopeDocuments[]> {
  const { storage, signal } = reading;
  const scopes = await notesByScope(summary, reading);
  const revisions: ScopeDocuments[] = [];
  for (const [scope, sources] of scopes) {
    const made = [
      ...(scope === 'organization' ? documentsOf('facts', 'facts', facts(summary)) : []),
      ...documentsOf('notes', 'sources', sources),
    ];
    const documents: StoredDocument[] = [];
    for (const one of made) documents.push(await storeDocument(storage, organizationId, one, signal));
    revisions.push({ scope, documents });
  }
  return revisions;
}
