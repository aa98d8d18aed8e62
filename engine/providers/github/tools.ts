import { z } from 'zod';
import { type Effect, inputSchema, type Risk, type Tool } from '../provider.ts';

const owner = z.string().regex(/^[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})$/);
// `.` and `..` fit the letters, and would lead elsewhere.
const repository = z
  .string()
  .regex(/^(?!\.{1,2}$)[A-Za-z0-9_.-]{1,100}$/)
  .describe('one of the settings');
const at = { owner, repository };
const number = z.int().min(1).max(2_147_483_647);
const page = { page: z.int().min(1).max(10_000).optional(), perPage: z.int().min(1).max(100).optional() };
const title = z.string().min(1).max(256);
const body = z.string().max(65_536);
const state = z.enum(['open', 'closed', 'all']).optional();
const labels = z.array(z.string().min(1).max(50)).max(100);

type Row = readonly [key: string, title: string, description: string, effect: Effect, risk: Risk, input: z.ZodRawShape];

const rows: readonly Row[] = [
  ['repositories.get', 'Read a repository', 'Reads facts of a repository.', 'read', 'low', at],
  [
    'issues.list',
    'List issues',
    'Lists issues and pull requests.',
    'read',
    'low',
    { ...at, ...page, state, labels: labels.optional() },
  ],
  ['issues.get', 'Read an issue', 'Reads an issue with its text.', 'read', 'low', { ...at, number }],
  [
    'issues.comments.list',
    'List comments',
    'Lists the comments of an issue or pull request.',
    'read',
    'low',
    { ...at, ...page, number },
  ],
  ['pulls.list', 'List pull requests', 'Lists pull requests.', 'read', 'low', { ...at, ...page, state }],
  ['pulls.get', 'Read a pull request', 'Reads a pull request with its text.', 'read', 'low', { ...at, number }],
  [
    'pulls.files.list',
    'List changed files',
    'Lists the files that a pull request changes.',
    'read',
    'low',
    { ...at, ...page, number },
  ],
  [
    'contents.get',
    'Read a file',
    'Reads a file or lists a folder, at a branch, tag or commit.',
    'read',
    'low',
    { ...at, path: z.string().max(1_000), ref: z.string().max(255).optional() },
  ],
  [
    'issues.create',
    'Open an issue',
    'Opens an issue. Whoever watches the repository is notified.',
    'write',
    'external',
    { ...at, title, body: body.optional(), labels: labels.optional() },
  ],
  [
    'issues.comments.create',
    'Write a comment',
    'Comments on an issue or pull request. Whoever takes part is notified.',
    'write',
    'external',
    { ...at, number, body: body.min(1) },
  ],
  [
    'issues.update',
    'Change an issue',
    'Changes title, text, labels or state of an issue.',
    'write',
    'external',
    {
      ...at,
      number,
      title: title.optional(),
      body: body.optional(),
      labels: labels.optional(),
      state: z.enum(['open', 'closed']).optional(),
    },
  ],
  [
    'pulls.create',
    'Open a pull request',
    'Opens a pull request between two branches.',
    'write',
    'external',
    {
      ...at,
      title,
      body: body.optional(),
      head: z.string().min(1).max(255),
      base: z.string().min(1).max(255),
      draft: z.boolean().optional(),
    },
  ],
  [
    'pulls.merge',
    'Merge a pull request',
    'Merges a pull request into its branch.',
    'write',
    'high',
    {
      ...at,
      number,
      method: z.enum(['merge', 'squash', 'rebase']).optional(),
      headSha: z.string().regex(/^[0-9a-f]{40}$/),
    },
  ],
];

export const tools: readonly Tool[] = rows.map(([key, name, description, effect, risk, input]) => ({
  key: `github.${key}`,
  title: name,
  description,
  effect,
  risk,
  scopes: [],
  inputSchema: inputSchema(input),
}));
