import { z } from 'zod';
import { quoted } from '../texts.ts';
import { type LookUpResult, toolsOf } from '../tool.ts';
import { type Call, type Query, read as readJson, write as send } from './api.ts';
import { at, body, branch, inSettings, issueNumber, labels, nameOf, pullNumber, repoPath, title } from './arguments.ts';
import type { Credential, Settings } from './connection.ts';

const { write } = toolsOf<Credential, Settings>();

/** Nobody sees it on a page; it tells what an action made from what others did. */
const marker = (actionId: string) => `<!-- action:${actionId} -->`;
const marked = (text: string | undefined, actionId: string) =>
  text === undefined || text === '' ? marker(actionId) : `${text}\n\n${marker(actionId)}`;

const issue = z.object({ number: z.int(), html_url: z.string() });
const comment = z.object({ id: z.int(), html_url: z.string() });
const issueResult = ({ number, html_url: url }: z.output<typeof issue>) => ({ number, url });
const commentResult = ({ id, html_url: url }: z.output<typeof comment>) => ({ id, url });

const withBody = z.object({ body: z.string().nullish() });

/** Among the newest hundred of a list: what is not there may come yet. */
async function findMarked<S extends z.ZodType>(
  { context, access, actionId }: Call & Readonly<{ actionId: string }>,
  path: string,
  query: Query,
  schema: S,
  resultOf: (one: z.output<S>) => unknown,
): Promise<LookUpResult> {
  const newest = { ...query, sort: 'created', direction: 'desc', per_page: 100 };
  const list = await readJson(context, access.credential, path, z.array(z.looseObject({})), newest);
  const found = list.find((one) => withBody.safeParse(one).data?.body?.includes(marker(actionId)));
  return found ? { outcome: 'found', result: resultOf(schema.parse(found)) } : { outcome: 'none' };
}

const MAX_SHOWN_BODY = 1_000;
const bodyText = (text: string | undefined) =>
  text === undefined || text === '' ? 'without a text' : `with the text ${quoted(text, MAX_SHOWN_BODY)}`;
const labelText = (names: readonly string[] | undefined) =>
  names === undefined || names.length === 0 ? '' : `, labels ${quoted(names.join(', '), 200)}`;

const changes = {
  title: title.optional(),
  body: body.optional(),
  labels: labels.optional().describe('all of them: others are taken off'),
  state: z.enum(['open', 'closed']).optional(),
};
const issueState = z.object({
  number: z.int(),
  html_url: z.string(),
  title: z.string(),
  body: z.string().nullish(),
  state: z.string(),
  labels: z.array(z.union([z.string(), z.object({ name: z.string() })])),
});
const namesOf = (list: z.output<typeof issueState>['labels']) =>
  list.map((one) => (typeof one === 'string' ? one : one.name));
const same = (one: readonly string[], other: readonly string[]) =>
  JSON.stringify([...one].sort()) === JSON.stringify([...other].sort());

const pullState = z.object({
  merged: z.boolean(),
  merge_commit_sha: z.string().nullish(),
  head: z.object({ sha: z.string() }),
});

export const writes = [
  write({
    key: 'github.issues.create',
    title: 'Open an issue',
    description: 'Opens an issue. Whoever watches the repository is notified.',
    risk: 'external',
    input: { ...at, title, body: body.optional(), labels: labels.optional() },
    check: inSettings,
    summary: ({ args }) =>
      `Open an issue in ${nameOf(args)}: ${quoted(args.title)}${labelText(args.labels)}, ${bodyText(args.body)}`,
    async execute(call) {
      const { title: name, body: text, labels: with_ } = call.args;
      const content = { title: name, body: marked(text, call.actionId), labels: with_ };
      return issueResult(await send(call, 'POST', `${repoPath(call.args)}/issues`, content, issue));
    },
    lookUp: (call) => findMarked(call, `${repoPath(call.args)}/issues`, { state: 'all' }, issue, issueResult),
  }),
  write({
    key: 'github.issues.comments.create',
    title: 'Write a comment',
    description: 'Comments on an issue or pull request. Whoever takes part is notified.',
    risk: 'external',
    input: { ...at, issueNumber, body: body.min(1) },
    check: inSettings,
    summary: ({ args }) =>
      `Comment on issue or pull request #${args.issueNumber} of ${nameOf(args)} ${bodyText(args.body)}`,
    async execute(call) {
      const path = `${repoPath(call.args)}/issues/${call.args.issueNumber}/comments`;
      const content = { body: marked(call.args.body, call.actionId) };
      return commentResult(await send(call, 'POST', path, content, comment));
    },
    lookUp: (call) => findMarked(call, `${repoPath(call.args)}/issues/comments`, {}, comment, commentResult),
  }),
  write({
    key: 'github.issues.update',
    title: 'Change an issue',
    description: 'Changes title, text, labels or state of an issue.',
    risk: 'external',
    input: { ...at, issueNumber, ...changes },
    check: (args, settings) => [
      ...inSettings(args, settings),
      ...([args.title, args.body, args.labels, args.state].every((one) => one === undefined)
        ? [{ path: [], message: 'changes nothing', code: 'required' }]
        : []),
    ],
    summary({ args }) {
      const parts = [
        ...(args.state === undefined ? [] : [args.state === 'closed' ? 'close it' : 'open it again']),
        ...(args.title === undefined ? [] : [`title ${quoted(args.title)}`]),
        ...(args.labels === undefined ? [] : [`labels ${quoted(args.labels.join(', ') || 'none', 200)}`]),
        ...(args.body === undefined ? [] : [`text ${quoted(args.body, MAX_SHOWN_BODY)}`]),
      ];
      return `Change issue #${args.issueNumber} of ${nameOf(args)}: ${parts.join(', ')}`;
    },
    async execute(call) {
      const { title: name, body: text, labels: with_, state } = call.args;
      const content = { title: name, body: text && marked(text, call.actionId), labels: with_, state };
      const path = `${repoPath(call.args)}/issues/${call.args.issueNumber}`;
      return issueResult(await send(call, 'PATCH', path, content, issue));
    },
    /** It is as it was to become. Where it is not, somebody may have changed it since. */
    async lookUp({ context, access, args, actionId }) {
      const path = `${repoPath(args)}/issues/${args.issueNumber}`;
      const found = await readJson(context, access.credential, path, issueState);
      const isDone =
        (args.title === undefined || found.title === args.title) &&
        (args.state === undefined || found.state === args.state) &&
        (args.labels === undefined || same(namesOf(found.labels), args.labels)) &&
        (args.body === undefined || (found.body ?? '') === (args.body && marked(args.body, actionId)));
      return isDone ? { outcome: 'found', result: issueResult(found) } : { outcome: 'none' };
    },
  }),
  write({
    key: 'github.pulls.create',
    title: 'Open a pull request',
    description: 'Opens a pull request between two branches.',
    risk: 'external',
    input: { ...at, title, body: body.optional(), head: branch, base: branch, draft: z.boolean().optional() },
    check: inSettings,
    summary: ({ args }) =>
      `Open a ${args.draft ? 'draft of a ' : ''}pull request in ${nameOf(args)} from ${quoted(args.head)} into ${quoted(
        args.base,
      )}: ${quoted(args.title)}, ${bodyText(args.body)}`,
    async execute(call) {
      const { title: name, body: text, head, base, draft } = call.args;
      const content = { title: name, body: marked(text, call.actionId), head, base, draft };
      return issueResult(await send(call, 'POST', `${repoPath(call.args)}/pulls`, content, issue));
    },
    lookUp: (call) => findMarked(call, `${repoPath(call.args)}/pulls`, { state: 'all' }, issue, issueResult),
  }),
  write({
    key: 'github.pulls.comments.create',
    title: 'Comment on a line',
    description: 'Comments on a line that a pull request changes. Whoever takes part is notified.',
    risk: 'external',
    input: {
      ...at,
      pullNumber,
      body: body.min(1),
      commitId: z.string().regex(/^[0-9a-f]{40}$/),
      path: z.string().min(1).max(1_000),
      line: z.int().min(1).max(10_000_000),
      side: z.enum(['LEFT', 'RIGHT']).optional().describe('by default RIGHT, what the line becomes'),
    },
    check: inSettings,
    summary: ({ args }) =>
      `Comment on line ${args.line} of ${quoted(args.path)} in pull request #${args.pullNumber} of ${nameOf(args)} ${bodyText(args.body)}`,
    async execute(call) {
      const { pullNumber: pull, body: text, commitId, path, line, side = 'RIGHT' } = call.args;
      const content = { body: marked(text, call.actionId), commit_id: commitId, path, line, side };
      const to = `${repoPath(call.args)}/pulls/${pull}/comments`;
      return commentResult(await send(call, 'POST', to, content, comment));
    },
    lookUp: (call) => findMarked(call, `${repoPath(call.args)}/pulls/comments`, {}, comment, commentResult),
  }),
  write({
    key: 'github.pulls.merge',
    title: 'Merge a pull request',
    description: 'Merges a pull request into its branch, where its last commit is the one that is named.',
    risk: 'high',
    input: {
      ...at,
      pullNumber,
      sha: z
        .string()
        .regex(/^[0-9a-f]{40}$/)
        .describe('the last commit of the pull request'),
      mergeMethod: z.enum(['merge', 'squash', 'rebase']).optional(),
    },
    check: inSettings,
    summary: ({ args }) =>
      `Merge pull request #${args.pullNumber} of ${nameOf(args)} at commit ${args.sha}${
        args.mergeMethod === undefined ? '' : `, method ${args.mergeMethod}`
      }`,
    async execute(call) {
      const { pullNumber: pull, sha, mergeMethod } = call.args;
      const path = `${repoPath(call.args)}/pulls/${pull}/merge`;
      const schema = z.object({ sha: z.string(), merged: z.literal(true) });
      const done = await send(call, 'PUT', path, { sha, merge_method: mergeMethod }, schema);
      return { number: pull, sha: done.sha };
    },
    /** One of another commit was not merged by this. One that is not merged may be, as long as GitHub is at it. */
    async lookUp({ context, access, args }) {
      const path = `${repoPath(args)}/pulls/${args.pullNumber}`;
      const { merged, head, merge_commit_sha: sha } = await readJson(context, access.credential, path, pullState);
      if (!merged) return { outcome: 'none' };
      if (head.sha !== args.sha) return { outcome: 'none' };
      return { outcome: 'found', result: { number: args.pullNumber, sha: sha ?? null } };
    },
  }),
];
