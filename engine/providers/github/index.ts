import { z } from 'zod';
import { defineProvider, type ProviderContext, type SettingIssue, unknownChoices } from '../provider.ts';
import { providerId, shownOrNull } from '../texts.ts';
import { read } from './api.ts';
import { type Credential, caseless, credential, MAX_REPOSITORIES, secretOf, settings } from './connection.ts';
import { datasets } from './datasets.ts';
import { gitHost } from './git.ts';
import { oauth2 } from './oauth.ts';
import { API, WEB } from './site.ts';
import { tools } from './tools.ts';

const PAGE_SIZE = 100;

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
  origins: [API, WEB],
  services: [],
  settings: { schema: settings, required: true },
  credential,
  tools,
  datasets,
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
