import type * as Tap from 'tap';
import { github } from '../../../engine/providers/github/index.ts';
import { openClient, openServer, type Reply } from './support.ts';
import { ACTION, toolsOf } from './tool_calls.ts';

export const API = 'https://api.github.com';
export const SHA = 'a'.repeat(40);
export const MARKER = `<!-- action:${ACTION} -->`;
export const at = { owner: 'acme', repo: 'site' };
export const credential = { kind: 'github_token', token: `ghp_${'x'.repeat(36)}` };
const settings = { kind: 'github', owner: 'Acme', repositories: ['Site', 'shop'] };

export async function open(test: Tap.Test, reply: Reply) {
  const server = await openServer(test, reply);
  const client = openClient(test, { [API]: server.origin });
  return { server, client, tools: toolsOf(github, { client, credential, settings }) };
}

export const READS: Readonly<Record<string, readonly [args: object, path: string, query: object]>> = {
  'repositories.get': [{}, '/repos/acme/site', {}],
  'issues.list': [
    {
      state: 'all',
      labels: ['a', 'b'],
      since: '2030-01-01T00:00:00Z',
      sort: 'updated',
      direction: 'asc',
      perPage: 100,
    },
    '/repos/acme/site/issues',
    {
      state: 'all',
      labels: 'a,b',
      since: '2030-01-01T00:00:00Z',
      sort: 'updated',
      direction: 'asc',
      per_page: '100',
      page: '1',
    },
  ],
  'issues.get': [{ issueNumber: 7 }, '/repos/acme/site/issues/7', {}],
  'issues.comments.list': [{ issueNumber: 7 }, '/repos/acme/site/issues/7/comments', { per_page: '30', page: '1' }],
  'issues.search': [
    { q: 'slow "page load"' },
    '/search/issues',
    { q: 'slow "page load" repo:acme/site is:issue', per_page: '30', page: '1' },
  ],
  'pulls.list': [{ base: 'main' }, '/repos/acme/site/pulls', { base: 'main', per_page: '30', page: '1' }],
  'pulls.get': [{ pullNumber: 8 }, '/repos/acme/site/pulls/8', {}],
  'pulls.files.list': [{ pullNumber: 8 }, '/repos/acme/site/pulls/8/files', { per_page: '30', page: '1' }],
  'pulls.comments.list': [{ pullNumber: 8 }, '/repos/acme/site/pulls/8/comments', { per_page: '30', page: '1' }],
  'pulls.search': [{ q: 'x' }, '/search/issues', { q: 'x repo:acme/site is:pr', per_page: '30', page: '1' }],
  'commits.list': [
    { sha: 'main', path: 'a b.md' },
    '/repos/acme/site/commits',
    { sha: 'main', path: 'a b.md', per_page: '30', page: '1' },
  ],
  'commits.get': [{ ref: 'feat/ü' }, '/repos/acme/site/commits/feat/%C3%BC', {}],
  'commits.search': [{ q: 'x' }, '/search/commits', { q: 'x repo:acme/site', per_page: '30', page: '1' }],
  'contents.get': [{ path: 'docs/a b?.md', ref: 'v1' }, '/repos/acme/site/contents/docs/a%20b%3F.md', { ref: 'v1' }],
  'contents.search': [{ q: 'x' }, '/search/code', { q: 'x repo:acme/site', per_page: '30', page: '1' }],
};

export const WRITES: Readonly<
  Record<string, readonly [args: object, request: string, body: object, response: object, result: object]>
> = {
  'issues.create': [
    { title: 'Slow', body: 'It is.', labels: ['bug'] },
    'POST /repos/acme/site/issues',
    { title: 'Slow', body: `It is.\n\n${MARKER}`, labels: ['bug'] },
    { number: 7, html_url: 'https://github.com/7' },
    { number: 7, url: 'https://github.com/7' },
  ],
  'issues.comments.create': [
    { issueNumber: 7, body: 'Yes.' },
    'POST /repos/acme/site/issues/7/comments',
    { body: `Yes.\n\n${MARKER}` },
    { id: 70, html_url: 'https://github.com/70' },
    { id: 70, url: 'https://github.com/70' },
  ],
  'issues.update': [
    { issueNumber: 7, state: 'closed', labels: [], body: '' },
    'PATCH /repos/acme/site/issues/7',
    { state: 'closed', labels: [], body: '' },
    { number: 7, html_url: 'https://github.com/7' },
    { number: 7, url: 'https://github.com/7' },
  ],
  'pulls.create': [
    { title: 'Fast', head: 'fast', base: 'main', draft: true },
    'POST /repos/acme/site/pulls',
    { title: 'Fast', body: MARKER, head: 'fast', base: 'main', draft: true },
    { number: 8, html_url: 'https://github.com/8' },
    { number: 8, url: 'https://github.com/8' },
  ],
  'pulls.comments.create': [
    { pullNumber: 8, body: 'Why?', commitId: SHA, path: 'a.ts', line: 4 },
    'POST /repos/acme/site/pulls/8/comments',
    { body: `Why?\n\n${MARKER}`, commit_id: SHA, path: 'a.ts', line: 4, side: 'RIGHT' },
    { id: 80, html_url: 'https://github.com/80' },
    { id: 80, url: 'https://github.com/80' },
  ],
  'pulls.merge': [
    { pullNumber: 8, sha: SHA, mergeMethod: 'squash' },
    'PUT /repos/acme/site/pulls/8/merge',
    { sha: SHA, merge_method: 'squash' },
    { sha: 'b'.repeat(40), merged: true, message: 'merged' },
    { number: 8, sha: 'b'.repeat(40) },
  ],
};
