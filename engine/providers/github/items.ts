import { z } from 'zod';
import { type Columns, CursorMovedError, type Fact } from '../dataset.ts';
import { readMeasured } from '../measured.ts';
import { ProviderError } from '../outgoing/index.ts';
import { type Query, requestOf, urlOf } from './api.ts';
import { repoPath } from './arguments.ts';
import { type Collecting, repositoryOf } from './repository.ts';
import { site } from './site.ts';

const PER_PAGE = 100;
/** Each of a page may have a text of 65,536 characters, and a pull request describes two repositories. */
const MAX_BYTES = 16 * 1024 * 1024;

const time = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));
const label = z.union([z.string(), z.object({ name: z.string().nullish() }).transform(({ name }) => name ?? '')]);

const item = z.object({
  node_id: z.string().min(1).max(200),
  number: z.int().min(1),
  state: z.enum(['open', 'closed']),
  created_at: time,
  updated_at: time,
  closed_at: time.nullish(),
  merged_at: time.nullish(),
  labels: z.array(label).default([]),
  // Of an issue: it is a pull request.
  pull_request: z.unknown().optional(),
});
export type Item = z.output<typeof item>;

/** `labels`: their names, in order. */
export const ISSUE_COLUMNS = {
  number: 'count',
  state: 'text',
  created_at: 'time',
  closed_at: 'time',
  labels: 'words',
} as const satisfies Columns;
export const PULL_COLUMNS = { ...ISSUE_COLUMNS, merged_at: 'time' } as const satisfies Columns;

/** GitHub lets an item have 100 labels of 50 characters. */
const wordsOf = (names: readonly string[]) =>
  [...new Set(names)]
    .filter((name) => name !== '')
    .sort()
    .join('\n') || null;

export function issueFact(one: Item): Fact {
  return {
    key: one.node_id,
    effectiveAt: one.created_at,
    contentAt: one.created_at,
    revision: one.updated_at,
    values: {
      number: one.number,
      state: one.state,
      created_at: one.created_at,
      closed_at: one.closed_at ?? null,
      labels: wordsOf(one.labels),
    },
  };
}

export function pullFact(one: Item): Fact {
  const fact = issueFact(one);
  return { ...fact, values: { ...fact.values, merged_at: one.merged_at ?? null } };
}

/** The page that a `Link` leads to. GitHub gives page numbers, and an opaque place where a list is long. */
export const place = z.object({
  page: z
    .string()
    .regex(/^\d{1,9}$/)
    .optional(),
  after: z
    .string()
    .regex(/^[\x21-\x7e]{1,500}$/)
    .optional(),
});
export type Place = z.output<typeof place>;

/** What comes behind a page; null: nothing does. */
function nextPlace(link: string | undefined, here: Place, length: number): Place | null {
  if (link === undefined) return length < PER_PAGE ? null : { page: String(Number(here.page ?? 1) + 1) };
  const address = /<([^<>]*)>; ?rel="next"/.exec(link)?.[1];
  if (address === undefined) return null;
  const query = URL.parse(address)?.searchParams;
  const found = place.safeParse({ page: query?.get('page') ?? undefined, after: query?.get('after') ?? undefined });
  const isHere = found.data?.page === here.page && found.data?.after === here.after;
  if (isHere) throw new ProviderError('github', 'failed', 'The provider says that there is more, and shows no more.');
  if (found.success && (found.data.page ?? found.data.after) !== undefined) return found.data;
  throw new ProviderError(
    'github',
    'failed',
    'The provider names a next page in a form that is not the documented one.',
  );
}

/** A page of issues, pull requests among them, or of pull requests. @throws ProviderError, CursorMovedError */
export async function readItems(call: Collecting, list: 'issues' | 'pulls', query: Query, here: Place = {}) {
  const { context, access } = call;
  const path = `${repoPath(repositoryOf(call))}/${list}`;
  const request = {
    ...requestOf(context, access.credential),
    effect: 'read' as const,
    url: urlOf(path, { state: 'all', ...query, per_page: PER_PAGE, ...here }),
    maxBytes: MAX_BYTES,
  };
  try {
    const { data: items, bytes, headers } = await readMeasured(context, site, request, z.array(item));
    return { items, bytes, next: nextPlace(headers['link'], here, items.length) };
  } catch (error) {
    // A place of an earlier page: without it the same request is good.
    const isPlace = error instanceof ProviderError && error.status === 422 && here.after !== undefined;
    throw isPlace ? new CursorMovedError('The provider does not know the place of the page any more.') : error;
  }
}
