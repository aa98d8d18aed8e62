// Executions that work with a repository through the gateway, whose provider is a server of git on loopback.
import { randomUUID } from 'node:crypto';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Action } from '../../../api/actions/schema.ts';
import { sealFields } from '../../../engine/integrations/secrets.ts';
import { integrationConfig } from '../../engine/integrations/support.ts';
import { agentPath, expectSuccess, type HeldRun, ownerPath, runTask, sqlOf } from '../../support/api_fixtures.ts';
import { startTestApp, type TestApp, type TestAppOptions } from '../../support/app.ts';
import type { TearDown } from '../../support/database.ts';
import {
  authorizationEpoch,
  createTestOrganization,
  type ProfileFields,
  type TestOrganization,
} from '../../support/fixtures.ts';
import { openFolder } from '../../support/folders.ts';
import { type GitOrigin, git, gitDone, openGitOrigin } from '../../support/git_origin.ts';
import { account, allow, connect, createIntegration } from '../../support/integration_fixtures.ts';
import { type JsonObject, transition } from '../../support/transitions.ts';

/** The provider's own token: nobody but the provider may ever see it. */
export const TOKEN = 'github_pat_0123456789_planted4711';

export type GitWorld = Readonly<{ app: TestApp; origin: GitOrigin; sql: ReturnType<typeof sqlOf> }>;

export async function startGit(t: TearDown, options: TestAppOptions = {}): Promise<GitWorld> {
  const origin = await openGitOrigin(t, TOKEN);
  const { integrations } = integrationConfig({ origins: { 'https://github.com': origin.origin } });
  const app = await startTestApp(t, {
    ...options,
    // Nothing here beats, and moving a large repository takes longer than a lease.
    config: { integrations, allowPrivateAddresses: true, leaseSeconds: 3_000, ...options.config },
  });
  return { app, origin, sql: sqlOf(app) };
}

export type Coder = Readonly<{
  org: TestOrganization;
  integrationId: string;
  run: HeldRun;
  /** Of the gateway, with the capability in it. */
  url(repository?: string): string;
  capability: string;
}>;

export type CoderFields = Readonly<{
  tools?: readonly JsonObject[];
  profile?: ProfileFields;
  policies?: readonly string[];
  accessMode?: string;
  repositories?: readonly string[];
}>;

/** A capability for the run, of git unless said otherwise. */
export async function resolveGit(
  { app, sql }: Pick<GitWorld, 'app' | 'sql'>,
  org: TestOrganization,
  integrationId: string,
  run: HeldRun,
  kind = 'git',
) {
  const body = {
    integrationKey: integrationId,
    authorizationEpoch: await authorizationEpoch(sql, org.organizationId),
    kind,
  };
  const client = app.owner.as(run.executionToken);
  const path = agentPath(org, '/integrations/resolve');
  const reply = await client.post<{ gateway: { capability: string; url: string } }>(path, body);
  return expectSuccess(reply).gateway;
}

/** An organization whose engineering works on repositories of `acme`, with a run that may push. */
export async function createCoder(world: Pick<GitWorld, 'app' | 'sql'>, fields: CoderFields = {}): Promise<Coder> {
  const { app, sql } = world;
  const { policies = ['git.read', 'git.propose'], accessMode = 'full', repositories = ['shop'], tools = [] } = fields;
  const profile = { kind: 'department', department: 'engineering', maxConcurrentRuns: 5, ...fields.profile };
  const org = await createTestOrganization(sql, profile);
  await allow(sql, org, ...policies);
  const { organizationId } = org;
  const { id } = await createIntegration(sql, org, { provider: 'github', settingsRequired: true, tools });
  const target = { organizationId, integrationId: id, revision: 1 };
  const keys = app.config.integrations.encryptionKeys;
  const credential = JSON.stringify({ kind: 'github_token', token: TOKEN });
  const secrets = sealFields(keys, 'github', target, new Map([['credential', credential]]));
  await connect(sql.api, org, id, account(randomUUID(), { kind: 'github_token', grantedScopes: null }), { secrets });
  const settings = { kind: 'github', owner: 'acme', repositories };
  await transition(sql.api, 'integration_settings_put', {
    organizationId,
    integrationRef: id,
    settings,
    connectionRevision: 1,
    disconnect: false,
    forgetTools: false,
  });
  await transition(sql.api, 'integration_tools_put', { organizationId, integrationRef: id, change: { accessMode } });
  const run = await runTask(app, org);
  const { capability, url } = await resolveGit(world, org, id, run);
  return {
    org,
    integrationId: id,
    run,
    capability,
    url: (repository = 'acme/shop') => `${url.replace('://', `://agent:${capability}@`)}/${repository}`,
  };
}

/** A repository at the provider with one commit on `main`. @returns its folder */
export async function seedRepository(t: TearDown, origin: GitOrigin, name = 'acme/shop'): Promise<string> {
  const bare = origin.create(name);
  const work = path.join(await openFolder(t), 'seed');
  await gitDone(path.dirname(work), 'clone', '--quiet', bare, work);
  await commitFile(work, 'README.md', 'shop\n', 'Begin');
  await gitDone(work, 'push', '--quiet', 'origin', 'HEAD:refs/heads/main');
  return bare;
}

/** @returns the name of the commit */
export async function commitFile(folder: string, name: string, text: string | Uint8Array, message = `Add ${name}`) {
  await writeFile(path.join(folder, name), text);
  await gitDone(folder, 'add', '--all');
  await gitDone(folder, 'commit', '--quiet', '--message', message);
  return gitDone(folder, 'rev-parse', 'HEAD');
}

/** A clone through the gateway. @returns its folder */
export async function cloneOf(t: TearDown, coder: Coder, ...options: readonly string[]): Promise<string> {
  const folder = path.join(await openFolder(t), 'clone');
  await gitDone(path.dirname(folder), 'clone', '--quiet', ...options, coder.url(), folder);
  return folder;
}

export type Pushed = Readonly<{
  coder: Coder;
  bare: string;
  folder: string;
  id: string;
  before: string;
  made: string;
}>;

/** A push of a commit to `main`, and to other new branches, that an owner has approved. */
export async function approvedPush(
  t: TearDown,
  world: GitWorld,
  name: string,
  ...branches: readonly string[]
): Promise<Pushed> {
  const { app, origin } = world;
  const bare = await seedRepository(t, origin, `acme/${name}`);
  const coder = await createCoder(world, { repositories: [name] });
  const folder = path.join(await openFolder(t), 'clone');
  await gitDone(path.dirname(folder), 'clone', '--quiet', coder.url(`acme/${name}`), folder);
  const before = await gitDone(folder, 'rev-parse', 'HEAD');
  const made = await commitFile(folder, 'a.txt', name);
  await git(folder, 'push', 'origin', 'HEAD:main', ...branches.map((branch) => `HEAD:refs/heads/${branch}`));
  const [action] = expectSuccess(await app.owner.get<Action[]>(ownerPath(coder.org, '/actions')));
  if (!action) throw new Error('there is no action');
  expectSuccess(await app.owner.post(ownerPath(coder.org, `/actions/${action.id}/approve`)));
  return { coder, bare, folder, id: action.id, before, made };
}

/** Another person's commit on `main`. */
export async function moveMain(t: TearDown, bare: string): Promise<string> {
  const other = path.join(await openFolder(t), 'other');
  await gitDone(path.dirname(other), 'clone', '--quiet', bare, other);
  const theirs = await commitFile(other, 'theirs.txt', 'theirs');
  await gitDone(other, 'push', '--quiet', 'origin', 'HEAD:main');
  return theirs;
}

/** The folders of pushes that are checked or sent. */
export function staged(folder: string): Promise<string[]> {
  return readdir(path.join(folder, 'staging')).catch((): string[] => []);
}

/** What a process keeps of its pushes: their private folders, and files that hold the credential. */
async function kept(folder: string): Promise<string[]> {
  const forms = [TOKEN, Buffer.from(`x-access-token:${TOKEN}`).toString('base64')];
  const found = await staged(folder);
  for (const file of await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => [])) {
    if (!file.isFile()) continue;
    const place = path.join(file.parentPath, file.name);
    const bytes = await readFile(place).catch(() => undefined);
    if (forms.some((form) => bytes?.includes(form))) found.push(place);
  }
  return found;
}

/** What should not stay in the folder of a process after a push, whose outcome is told before its folder is removed. */
export async function leftovers(folder: string): Promise<string[]> {
  const deadline = Date.now() + 10_000;
  for (;;) {
    const found = await kept(folder);
    if (found.length === 0 || Date.now() > deadline) return found;
    await delay(10);
  }
}
