import { randomUUID } from 'node:crypto';
import type { Onboarding } from '../../../api/onboardings/schema.ts';
import { publishBuiltinCatalog } from '../../../engine/catalog/index.ts';
import { expectSuccess, type Fields, sqlOf } from '../../support/api_fixtures.ts';
import type { TestApp } from '../../support/app.ts';
import type { Client } from '../../support/http.ts';
import { FAILURE, finish } from '../../support/onboarding_fixtures.ts';

export function publish(app: TestApp) {
  return publishBuiltinCatalog(app.services.db);
}

/** The path of an onboarding's endpoints. */
export function onboardingPath(onboarding: Pick<Onboarding, 'organizationId'>, rest = ''): string {
  return `/organizations/${onboarding.organizationId}/onboarding${rest}`;
}

export async function create(app: TestApp, body: Fields = { name: 'Acme' }): Promise<Onboarding> {
  return expectSuccess(await app.owner.post<Onboarding>('/organization-onboardings', body), 201);
}

export async function get(app: TestApp, onboarding: Onboarding): Promise<Onboarding> {
  return expectSuccess(await app.owner.get<Onboarding>(onboardingPath(onboarding)));
}

type Put = Readonly<{ id?: string; client?: Client }> & Readonly<Record<string, unknown>>;

export function putSource(app: TestApp, onboarding: Onboarding, bytes: string | Uint8Array, given: Put = {}) {
  const { id = randomUUID(), client = app.owner, ...fields } = given;
  const query = { kind: 'markdown', fileName: 'plan.md', mediaType: 'text/markdown', ...fields } as Record<
    string,
    string | undefined
  >;
  return client.put<Onboarding>(onboardingPath(onboarding, `/sources/${id}`), bytes, { query });
}

export function start(app: TestApp, onboarding: Onboarding) {
  return app.owner.post<Onboarding>(onboardingPath(onboarding, '/start'));
}

/** Ends the research as its job does. */
export async function research(app: TestApp, onboarding: Onboarding, outcome: Fields = { status: 'completed' }) {
  const sql = sqlOf(app);
  const state = await finish(sql, onboarding, onboarding.generation, outcome);
  if (!state) throw new Error('no research is under way');
  return get(app, onboarding);
}

export function complete(app: TestApp, onboarding: Onboarding, fields: Fields = {}) {
  const body = { reviewSha256: onboarding.review?.sha256, ...fields };
  return app.owner.post<Onboarding>(onboardingPath(onboarding, '/complete'), body);
}

/** A new onboarding that calls brought into the state. */
export async function inState(app: TestApp, status: Onboarding['status']): Promise<Onboarding> {
  const created = await create(app);
  if (status === 'collecting') return created;
  expectSuccess(await putSource(app, created, '# Plan'), 201);
  const started = expectSuccess(await start(app, created));
  if (status === 'researching') return started;
  const over = await research(app, started, status === 'research_failed' ? FAILURE : { status: 'completed' });
  if (status === 'completed') return expectSuccess(await complete(app, over));
  if (status === 'discarded') return expectSuccess(await app.owner.delete<Onboarding>(onboardingPath(over)));
  return over;
}
