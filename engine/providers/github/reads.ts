import { z } from 'zod';
import { ProviderError } from '../outgoing/index.ts';
import { accountBucket } from '../provider.ts';
import { type ReadCall, TooMuchError, toolsOf } from '../tool.ts';
import { compact, PER_PAGE, type Query, read as readJson, readOne, readPage, record } from './api.ts';
import {
  type At,
  at,
  encodedPath,
  inSettings,
  issueNumber,
  labels,
  nameOf,
  pathIssues,
  perPage,
  pullNumber,
  repoPath,
  state,
} from './arguments.ts';
import { type Credential, caseless, type Settings } from './connection.ts';
import { API } from './site.ts';

const { read } = toolsOf<Credential, Settings>();
type Call<A> = ReadCall<A, Credential, Settings>;

const list = z.array(record);
const since = z.iso.datetime({ offset: true }).optional();
const order = {
  sort: z.enum(['created', 'updated']).optional(),
  direction: z.enum(['asc', 'desc']).optional().describe('by default desc'),
};

const page = (call: Call<{ perPage?: number | undefined }>, path: string, query: Query = {}) =>
  readPage(call, path, query, list, (items) => items);

// A file whose text is longer than 1 MB comes without it, and as a blob up to 100 MB.
const MAX_FILE_BYTES = 5 * 1024 * 1024;
const file = z.looseObject({
  type: z.string(),
  sha: z.string(),
  size: z.int().min(0).default(0),
  encoding: z.string().optional(),
  content: z.string().optional(),
});
const blob = z.object({ encoding: z.literal('base64'), content: z.string() });

/** GitHub lists no more of a folder, and does not say that there are more. */
const MAX_ENTRIES = 1_000;

/** Text as text; what is none, in base64. */
function decoded(base64: string) {
  const bytes = Buffer.from(base64, 'base64');
  const text = bytes.toString();
  return bytes.equals(Buffer.from(text)) && !text.includes('\0')
    ? { encoding: 'utf-8', content: text }
    : { encoding: 'base64', content: bytes.toString('base64') };
}

async function contents({ context, access, args }: Call<At & Readonly<{ path: string; ref?: string | undefined }>>) {
  const given = [context, access.credential] as const;
  const path = `${repoPath(args)}/contents/${encodedPath(args.path)}`;
  const found = await readJson(...given, path, z.union([z.array(record), file]), { ref: args.ref });
  if (Array.isArray(found) && found.length >= MAX_ENTRIES) {
    throw new TooMuchError(
      'names a folder of which GitHub shows the first 1,000 files alone: search for files instead',
    );
  }
  if (Array.isArray(found) || found.type !== 'file') return { data: compact(found) };
  const { content = '', encoding, ...facts } = found;
  if (encoding === 'base64') return { data: { ...record.parse(compact(facts)), ...decoded(content) } };
  if (found.size > MAX_FILE_BYTES) throw new ProviderError('github', 'too_large', 'The file is too large.');
  const whole = await readJson(...given, `${repoPath(args)}/git/blobs/${encodeURIComponent(found.sha)}`, blob);
  return { data: { ...record.parse(compact(facts)), ...decoded(whole.content) } };
}

/** Of a commit a page has 300, of a pull request as many as it is asked for. */
const MAX_FILES = 3_000;
const FILES_OF_COMMIT = 300;
const commit = z.looseObject({ files: list.optional() });

/** GitHub shows no more than a thousand. */
const MAX_FOUND = 1_000;
const found = z.object({
  total_count: z.int().min(0),
  incomplete_results: z.boolean().default(false),
  items: list,
});
const repositoryOf = z.object({
  repository_url: z.string().optional(),
  repository: z.object({ full_name: z.string() }).optional(),
});
const q = z.string().min(1).max(200).describe('as in the search of GitHub, without qualifiers of repositories');
const ELSEWHERE = /(?:^|[^A-Za-z0-9])(?:repo|org|user|owner|enterprise)\s*:/i;

type Searched = At & Readonly<{ q: string; perPage?: number | undefined }>;
type Search = Readonly<{ path: string; qualifier?: string; perMinute: number }>;

function search(call: Call<Searched>, { path, qualifier = '', perMinute }: Search) {
  const { args, context } = call;
  const name = caseless(nameOf(args));
  // A query can be read in more than one way: what is of another repository is not for the caller.
  const isOurs = (item: unknown) => {
    const { repository, repository_url: url } = repositoryOf.parse(item);
    return caseless(repository?.full_name ?? url?.slice(`${API}/repos/`.length)) === name;
  };
  return readPage(
    call,
    `/search/${path}`,
    { q: `${args.q} repo:${nameOf(args)}${qualifier}` },
    found,
    ({ incomplete_results: isIncomplete, items }) => {
      if (isIncomplete) throw new TooMuchError('takes GitHub too long to search to its end: narrow q, or try again');
      return items.filter(isOurs);
    },
    {
      buckets: [accountBucket('github', context, perMinute, perMinute / 60)],
      bound: {
        lastPage: Math.ceil(MAX_FOUND / (args.perPage ?? PER_PAGE)),
        shown: 'the 1,000 results that GitHub shows',
        isCut: ({ total_count: total }) => total > MAX_FOUND,
      },
    },
  );
}

const searchTool = (key: string, what: string, how: Search) =>
  read({
    key: `github.${key}.search`,
    title: `Search ${what}`,
    description: `Searches ${what} of a repository.`,
    input: { ...at, ...perPage, q },
    check(args, settings) {
      const message = 'must not name repositories: that of the arguments is searched';
      return [
        ...inSettings(args, settings),
        ...(ELSEWHERE.test(args.q) ? [{ path: ['q'], message, code: 'not_allowed' }] : []),
      ];
    },
    read: (call) => search(call, how),
  });

export const reads = [
  read({
    key: 'github.repositories.get',
    title: 'Read a repository',
    description: 'Reads facts of a repository.',
    input: at,
    check: inSettings,
    read: (call) => readOne(call, repoPath(call.args)),
  }),
  read({
    key: 'github.issues.list',
    title: 'List issues',
    description: 'Lists issues and pull requests; open ones where no state is named.',
    input: { ...at, ...perPage, ...order, state, labels: labels.optional(), since },
    check: inSettings,
    read(call) {
      const { state: of, labels: with_, since: after, sort, direction } = call.args;
      const query = { state: of, labels: with_?.join(','), since: after, sort, direction };
      return page(call, `${repoPath(call.args)}/issues`, query);
    },
  }),
  read({
    key: 'github.issues.get',
    title: 'Read an issue',
    description: 'Reads an issue with its text.',
    input: { ...at, issueNumber },
    check: inSettings,
    read: (call) => readOne(call, `${repoPath(call.args)}/issues/${call.args.issueNumber}`),
  }),
  read({
    key: 'github.issues.comments.list',
    title: 'List comments',
    description: 'Lists the comments of an issue or pull request, oldest first.',
    input: { ...at, ...perPage, issueNumber, since },
    check: inSettings,
    read: (call) =>
      page(call, `${repoPath(call.args)}/issues/${call.args.issueNumber}/comments`, { since: call.args.since }),
  }),
  searchTool('issues', 'issues', { path: 'issues', qualifier: ' is:issue', perMinute: 30 }),
  read({
    key: 'github.pulls.list',
    title: 'List pull requests',
    description: 'Lists pull requests; open ones where no state is named.',
    input: { ...at, ...perPage, ...order, state, base: z.string().min(1).max(255).optional() },
    check: inSettings,
    read(call) {
      const { state: of, base, sort, direction } = call.args;
      return page(call, `${repoPath(call.args)}/pulls`, { state: of, base, sort, direction });
    },
  }),
  read({
    key: 'github.pulls.get',
    title: 'Read a pull request',
    description: 'Reads a pull request with its text.',
    input: { ...at, pullNumber },
    check: inSettings,
    read: (call) => readOne(call, `${repoPath(call.args)}/pulls/${call.args.pullNumber}`),
  }),
  read({
    key: 'github.pulls.files.list',
    title: 'List changed files',
    description: 'Lists the files that a pull request changes.',
    input: { ...at, ...perPage, pullNumber },
    check: inSettings,
    read(call) {
      const perPage = call.args.perPage ?? PER_PAGE;
      const lastPage = Math.ceil(MAX_FILES / perPage);
      const before = (lastPage - 1) * perPage;
      return readPage(call, `${repoPath(call.args)}/pulls/${call.args.pullNumber}/files`, {}, list, (items) => items, {
        bound: {
          lastPage,
          shown: 'the 3,000 files that GitHub shows',
          isCut: ({ length }) => before + length >= MAX_FILES,
        },
      });
    },
  }),
  read({
    key: 'github.pulls.comments.list',
    title: 'List comments on lines',
    description: 'Lists the comments on lines that a pull request changes, oldest first.',
    input: { ...at, ...perPage, pullNumber },
    check: inSettings,
    read: (call) => page(call, `${repoPath(call.args)}/pulls/${call.args.pullNumber}/comments`),
  }),
  searchTool('pulls', 'pull requests', { path: 'issues', qualifier: ' is:pr', perMinute: 30 }),
  read({
    key: 'github.commits.list',
    title: 'List commits',
    description: 'Lists commits, newest first, of the default branch or from another branch, tag or commit.',
    input: {
      ...at,
      ...perPage,
      sha: z.string().min(1).max(255).optional().describe('a branch, tag or commit'),
      path: z.string().min(1).max(1_000).optional(),
      since,
      until: since,
    },
    check: inSettings,
    read(call) {
      const { sha, path, since: after, until } = call.args;
      return page(call, `${repoPath(call.args)}/commits`, { sha, path, since: after, until });
    },
  }),
  read({
    key: 'github.commits.get',
    title: 'Read a commit',
    description: 'Reads a commit with what it changes, a page of files at a time.',
    input: { ...at, ref: z.string().min(1).max(255).describe('a branch, tag or commit') },
    check: (args, settings) => [...inSettings(args, settings), ...pathIssues('ref', args.ref)],
    read: ({ args, ...call }) =>
      readPage({ ...call, args: {} }, `${repoPath(args)}/commits/${encodedPath(args.ref)}`, {}, commit, (one) => one, {
        perPage: null,
        bound: {
          lastPage: MAX_FILES / FILES_OF_COMMIT,
          shown: 'the 3,000 files that GitHub shows',
          isCut: ({ files = [] }) => files.length >= FILES_OF_COMMIT,
        },
      }),
  }),
  searchTool('commits', 'commits', { path: 'commits', perMinute: 30 }),
  read({
    key: 'github.contents.get',
    title: 'Read a file',
    description: 'Reads a file or lists a folder, at a branch, tag or commit. The root has an empty path.',
    input: { ...at, path: z.string().max(1_000), ref: z.string().min(1).max(255).optional() },
    check: (args, settings) => [...inSettings(args, settings), ...pathIssues('path', args.path)],
    read: contents,
  }),
  searchTool('contents', 'files', { path: 'code', perMinute: 10 }),
];
