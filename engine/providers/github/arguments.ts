import { z } from 'zod';
import type { ArgumentIssue } from '../tool.ts';
import { caseless, type Settings } from './connection.ts';

const owner = z.string().regex(/^[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})$/);
// `.` and `..` fit the letters, and would lead elsewhere.
const repo = z
  .string()
  .regex(/^(?!\.{1,2}$)[A-Za-z0-9_.-]{1,100}$/)
  .describe('one of the settings, without its owner');

export const at = { owner, repo };
export type At = Readonly<{ owner: string; repo: string }>;

const number = (what: string) => z.int().min(1).max(2_147_483_647).describe(`number of the ${what}`);
export const issueNumber = number('issue or pull request');
export const pullNumber = number('pull request');
export const perPage = { perPage: z.int().min(1).max(100).optional().describe('by default 30') };
export const title = z.string().min(1).max(256);
/** GitHub takes 65,536; the rest is for a marker. */
export const body = z.string().max(65_000);
export const state = z.enum(['open', 'closed', 'all']).optional();
export const labels = z.array(z.string().min(1).max(50)).max(100);
export const branch = z.string().min(1).max(255);

export const repoPath = (args: At) => `/repos/${args.owner}/${args.repo}`;
export const nameOf = (args: At) => `${args.owner}/${args.repo}`;

/** A repository of the settings: what else the credential reaches is nobody's here. */
export function inSettings(args: At, settings: Settings | null): readonly ArgumentIssue[] {
  const issue = (field: string): ArgumentIssue[] => [
    { path: [field], message: 'is none of the settings', code: 'not_allowed' },
  ];
  if (settings === null || caseless(args.owner) !== caseless(settings.owner)) return issue('owner');
  const allowed = settings.repositories.some((name) => caseless(name) === caseless(args.repo));
  return allowed ? [] : issue('repo');
}

/** Parts of a path that lead out of it. */
const LEADS_ELSEWHERE = /^\.{0,2}$/;

/** A path or a ref within the path of a request. */
export const encodedPath = (path: string) => path.split('/').map(encodeURIComponent).join('/');

export function pathIssues(field: string, path: string): readonly ArgumentIssue[] {
  const isPlain = path === '' || path.split('/').every((part) => !LEADS_ELSEWHERE.test(part));
  const message = 'must be a path without empty parts, . and ..';
  return isPlain ? [] : [{ path: [field], message, code: 'invalid_format' }];
}
