import { z } from 'zod';
import { oauth2Credential } from '../oauth/index.ts';
import { accountBucket, defineProvider, type ProviderContext, type SettingIssue, unknownChoices } from '../provider.ts';
import { choices, providerId, shownOrNull } from '../texts.ts';
import { gitHost } from './git.ts';
import { oauth2 } from './oauth.ts';
import { API, apiHeaders, site } from './site.ts';
import { tools } from './tools.ts';

const MAX_REPOSITORIES = 500;
const PAGE_SIZE = 100;

/** GitHub does not tell its names apart by case. */
const caseless = (name: unknown) => String(name).toLowerCase();

const token = z.strictObject({
  kind: z.literal('github_token'),
  token: z
    .string()
    .max(300)
    .regex(/^(?:github_pat_|gh[pousr]_)[A-Za-z0-9_]{20,}$/, 'must be a token of GitHub'),
});
const credential = z.discriminatedUnion('kind', [token, oauth2Credential]);
type Credential = z.output<typeof credential>;

const secretOf = (given: Credential) => (given.kind === 'github_token' ? given.token : given.accessToken);

const settings = z.strictObject({
  kind: z.literal('github'),
  owner: z.string().regex(/^[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})$/, 'must be the name of a user or an organization'),
  /** Names, without the owner. Empty: no repository is allowed. */
  repositories: choices(
    z
      .string()
      .regex(/^[A-Za-z0-9_.-]{1,100}$/, 'must be the name of a repository')
      .refine((name) => name !== '.' && name !== '..', 'must be the name of a repository'),
    MAX_REPOSITORIES,
    caseless,
  ),
});

const user = z.object({ id: z.int().min(1), login: z.string().min(1) });

const repository = z.object({
  id: z.int(),
  name: providerId,
  owner: z.object({ login: providerId }),
  private: z.boolean().default(false),
  archived: z.boolean().default(false),
  default_branch: shownOrNull,
  permissions: z.record(z.string(), z.boolean()).default({}),
});
type Repository = z.output<typeof repository>;

const installations = z.object({
  total_count: z.int().min(0),
  installations: z.array(z.object({ id: z.int().min(1) })),
});
const installed = z.object({ total_count: z.int().min(0), repositories: z.array(repository) });

function read<S extends z.ZodType>(context: ProviderContext, given: Credential, path: string, schema: S) {
  const request = {
    effect: 'read',
    url: `${API}${path}`,
    headers: apiHeaders(`Bearer ${secretOf(given)}`),
    // 5,000 an hour.
    buckets: [accountBucket('github', context, 100, 1.3)],
    signal: context.signal,
    maxBytes: 8 * 1024 * 1024,
  } as const;
  return context.client.json(site, request, schema);
}

/** Pages of one list, until one is not full or there are enough. */
async function pages<T>(limit: number, page: (query: string) => Promise<readonly T[]>): Promise<T[]> {
  const found: T[] = [];
  for (let number = 1; found.length <= limit; number += 1) {
    const some = await page(`per_page=${PAGE_SIZE}&page=${number}`);
    found.push(...some);
    if (some.length < PAGE_SIZE) break;
  }
  return found;
}

/** A person's token of the App sees what its installations were given; another token, what its owner sees. */
async function repositories(context: ProviderContext, given: Credential): Promise<Repository[]> {
  if (given.kind === 'github_token') {
    return pages(MAX_REPOSITORIES, (query) =>
      read(context, given, `/user/repos?${query}&sort=full_name`, z.array(repository)),
    );
  }
  const of = await pages(PAGE_SIZE, async (query) => {
    return (await read(context, given, `/user/installations?${query}`, installations)).installations;
  });
  const found: Repository[] = [];
  for (const { id } of of) {
    const some = await pages(MAX_REPOSITORIES - found.length, async (query) => {
      return (await read(context, given, `/user/installations/${id}/repositories?${query}`, installed)).repositories;
    });
    found.push(...some);
    if (found.length > MAX_REPOSITORIES) break;
  }
  return found;
}

const PERMISSIONS = ['pull', 'triage', 'push', 'maintain', 'admin'] as const;

export const github = defineProvider({
  key: 'github',
  title: 'GitHub',
  connections: ['oauth2', 'github_token'],
  oauth2,
  deploymentClient: 'github',
  git: gitHost(secretOf),
  services: [],
  settings: { schema: settings, required: true },
  credential,
  tools,
  datasets: [
    { key: 'github.issues', scopes: [] },
    { key: 'github.pulls', scopes: [] },
  ],
  async verify(context, access) {
    const { id, login } = await read(context, access.credential, '/user', user);
    return { subject: String(id), label: login };
  },
  /** `{id, name, owner, private, archived, defaultBranch, permissions}`, at most 500. */
  async discover(context, access) {
    const found = await repositories(context, access.credential);
    const items = found.slice(0, MAX_REPOSITORIES).map((one) => ({
      id: String(one.id),
      name: one.name,
      owner: one.owner.login,
      private: one.private,
      archived: one.archived,
      defaultBranch: one.default_branch,
      permissions: PERMISSIONS.filter((name) => one.permissions[name] === true),
    }));
    return { items, truncated: found.length > MAX_REPOSITORIES };
  },
  checkSettings({ owner, repositories: chosen }, { items }): readonly SettingIssue[] {
    const owned = items.filter((item) => caseless(item['owner']) === caseless(owner));
    const known = new Set(owned.map(({ name }) => caseless(name)));
    return unknownChoices('repositories', chosen.map(caseless), known, 'repository');
  },
});
