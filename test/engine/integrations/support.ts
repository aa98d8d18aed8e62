// Connections whose secrets open, over the real database and a provider on loopback.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import pino from 'pino';
import { Registry } from 'prom-client';
import { readConfig } from '../../../engine/config.ts';
import type { Database } from '../../../engine/db/database.ts';
import { type ConnectionTarget, type Integrations, openIntegrations } from '../../../engine/integrations/index.ts';
import { sealFields } from '../../../engine/integrations/secrets.ts';
import type { TearDown } from '../../support/database.ts';
import { createTestOrganization, type TestOrganization } from '../../support/fixtures.ts';
import { account, connect, createIntegration } from '../../support/integration_fixtures.ts';
import type { JsonObject, Sql } from '../../support/transitions.ts';
import { json, openServer } from '../providers/support.ts';

export const KEYS = `k1:${Buffer.alloc(32, 1).toString('base64')}`;

export type TestSettings = Readonly<{ origins: Readonly<Record<string, string>>; keys?: string }>;

/** Settings of a deployment whose providers are on loopback. */
export function integrationConfig({ origins, keys = KEYS }: TestSettings) {
  return readConfig({
    ENCRYPTION_KEYS: keys,
    GOOGLE_CLIENT_ID: 'google-client',
    GOOGLE_CLIENT_SECRET: 'google-secret',
    GITHUB_CLIENT_ID: 'github-client',
    GITHUB_CLIENT_SECRET: 'github-secret',
    X_ADS_CONSUMER_KEY: 'x-consumer',
    X_ADS_CONSUMER_SECRET: 'x-secret',
    ALLOW_PRIVATE_ADDRESSES: '1',
    PROVIDER_ORIGINS: JSON.stringify(origins),
  });
}

export type TestIntegrations = Integrations & Readonly<{ logged: string[]; registry: Registry }>;

export function openTestIntegrations(t: TearDown, db: Database, settings: TestSettings): TestIntegrations {
  const logged: string[] = [];
  const log = pino({ level: 'trace' }, { write: (line) => void logged.push(line) });
  const registry = new Registry();
  const integrations = openIntegrations({ config: integrationConfig(settings), db, registry, log });
  t.teardown(() => integrations.close());
  return { ...integrations, logged, registry };
}

export type Connected = Readonly<{ org: TestOrganization; target: ConnectionTarget }>;

/** An integration, of GitHub unless said otherwise, that was authorized: its access token ended a minute ago. */
export async function connectTokens(
  sql: Sql,
  tokens: Readonly<Record<string, string>>,
  options: Readonly<{
    keys: Integrations['settings']['encryptionKeys'];
    facts?: JsonObject;
    provider?: string;
    tools?: readonly JsonObject[];
  }>,
): Promise<Connected> {
  const { keys, facts = {}, provider = 'github', tools = [] } = options;
  const org = await createTestOrganization(sql);
  const { id } = await createIntegration(sql, org, { provider, tools });
  const target = { organizationId: org.organizationId, integrationId: id, revision: 1 };
  const secrets = sealFields(keys, provider, target, new Map(Object.entries(tokens)));
  const person = account('person', {
    kind: 'oauth2',
    grantedScopes: [],
    tokenExpiresAt: new Date(Date.now() - 60_000).toISOString(),
    ...facts,
  });
  await connect(sql.api, org, id, person, { secrets });
  return { org, target };
}

/** GitHub with one refresh token that is good: used, it gives the next one, and a used one ends nothing but itself. */
export async function openRotatingGithub(t: TearDown) {
  const state = {
    refreshToken: 'refresh-0',
    accessToken: 'access-0',
    refreshes: 0,
    refused: 0,
    grants: 1,
    isDown: false,
    isForbidden: false,
  };
  const hooks: { beforeReply?: (() => Promise<unknown>) | undefined } = {};
  const server = await openServer(t, async ({ url, body, headers }, res) => {
    if (state.isDown) {
      json(res, 503, {});
      return undefined;
    }
    if (url.pathname === '/user') {
      if (state.isForbidden) {
        json(res, 403, { message: 'Resource not accessible' });
        return undefined;
      }
      if (headers.authorization === `Bearer ${state.accessToken}`) return { id: 7, login: 'octocat' };
      json(res, 401, { message: 'Bad credentials' });
      return undefined;
    }
    if (url.pathname.endsWith('/grant')) {
      const isKnown = JSON.parse(body).access_token === state.accessToken;
      if (isKnown) state.grants -= 1;
      res.writeHead(isKnown ? 204 : 404).end();
      return undefined;
    }
    if (new URLSearchParams(body).get('refresh_token') !== state.refreshToken) {
      state.refused += 1;
      return { error: 'bad_refresh_token' };
    }
    state.refreshes += 1;
    state.refreshToken = `refresh-${state.refreshes}`;
    state.accessToken = `access-${state.refreshes}`;
    const reply = {
      access_token: state.accessToken,
      refresh_token: state.refreshToken,
      token_type: 'bearer',
      expires_in: 28_800,
      scope: '',
    };
    await hooks.beforeReply?.();
    return reply;
  });
  const origins = { 'https://github.com': server.origin, 'https://api.github.com': server.origin };
  return { state, hooks, origins, server };
}

/** What a process says of a use: its outcome. */
export type UseResult = Readonly<{ labels: string[]; errors: string[] }>;

/** A process of its own that uses connections (test/engine/integrations/process.ts). */
export function startProcess(t: TearDown, databaseUrl: string, settings: TestSettings) {
  const child: ChildProcess = fork(
    path.join(import.meta.dirname, 'process.ts'),
    [JSON.stringify({ databaseUrl, ...settings })],
    { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] },
  );
  t.teardown(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  });
  return {
    async use(target: ConnectionTarget, times: number): Promise<UseResult> {
      child.send({ target, times });
      const [result] = (await once(child, 'message')) as [UseResult];
      return result;
    },
    async kill(): Promise<void> {
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}
