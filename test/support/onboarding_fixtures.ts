// Onboardings as tests work with them, made through the transitions with the rights of the API and the jobs.
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { builtinCatalog, catalogRevision } from '../../engine/catalog/index.ts';
import type { Arguments, ScalarFunctionName } from '../../engine/db/signatures.ts';
import { document } from './context_fixtures.ts';
import { sha256, type TestOrganization } from './fixtures.ts';
import {
  type Connection,
  fixtureTransition,
  type Given,
  type JsonObject,
  type Sql,
  transition,
} from './transitions.ts';

const stateSchema = z.looseObject({
  organization_id: z.string(),
  status: z.string(),
  generation: z.number(),
  setup: z.looseObject({ name: z.string(), website: z.string().nullable(), departments: z.array(z.string()) }),
  integrations: z.array(z.looseObject({ integrationKey: z.string() })),
  chat_id: z.string().nullable(),
  research_status: z.string(),
  research_attempts: z.number(),
  research_error: z.looseObject({ code: z.string() }).nullable(),
  sources: z.array(z.looseObject({ id: z.string(), status: z.string() })),
  findings: z.array(z.looseObject({ id: z.string(), claim: z.string(), source_ids: z.array(z.string()) })),
  review: z
    .looseObject({
      sha256: z.string(),
      summary: z.looseObject({}),
      warnings: z.array(z.looseObject({ code: z.string() })),
    })
    .nullable(),
});
export type Onboarding = z.output<typeof stateSchema>;
const resultSchema = z.looseObject({ onboarding: stateSchema });
const maybeSchema = z.looseObject({ onboarding: stateSchema.nullable() });

type OnboardingOrganization = Pick<TestOrganization, 'organizationId'>;

/** The shipped catalog; onboardings start with its chat profile. */
export async function publishCatalog(sql: Sql): Promise<void> {
  const catalog = builtinCatalog();
  const args = { revision: catalogRevision(catalog), catalog };
  await transition(sql.owner, 'agent_catalog_publish_if_none', args);
}

type NameOf<F> = F extends `onboarding_${infer S}` ? S : never;
export type Step = Exclude<NameOf<ScalarFunctionName>, 'create'>;
export type GivenToStep<S extends Step> = Given<`onboarding_${S}`, 'organizationId'>;

/** One step of an onboarding by the name of its transition, after `onboarding_`. */
export async function step<S extends Step>(
  connection: Connection,
  org: OnboardingOrganization,
  name: S,
  ...[args]: GivenToStep<S>
): Promise<Onboarding> {
  const given = { organizationId: org.organizationId, ...args };
  return resultSchema.parse(await fixtureTransition(connection, `onboarding_${name}`, given)).onboarding;
}

export async function createOnboarding(sql: Sql, fields: JsonObject = {}): Promise<Onboarding> {
  const result = await transition(sql.api, 'onboarding_create', {
    fields: { name: 'Acme', slugBase: 'acme', timezone: 'UTC', departments: ['growth'], website: null, ...fields },
    subject: null,
  });
  return resultSchema.parse(result).onboarding;
}

export const placeOf = (onboarding: Onboarding): OnboardingOrganization => ({
  organizationId: onboarding.organization_id,
});

export const read = (sql: Sql, org: OnboardingOrganization) => step(sql.api, org, 'read');

export function putSource(
  connection: Connection,
  org: OnboardingOrganization,
  fields: JsonObject = {},
): Promise<Onboarding> {
  const source = {
    id: randomUUID(),
    kind: 'markdown',
    fileName: 'plan.md',
    mediaType: 'text/markdown',
    department: null,
    sizeBytes: 4,
    sha256: sha256('plan'),
    storageKey: `sources/${randomUUID()}`,
    ...fields,
  };
  return step(connection, org, 'source_put', { source });
}

/** The end of the attempt of this generation; null when it was out of date. */
export async function finish(
  sql: Sql,
  org: OnboardingOrganization,
  generation: number,
  outcome: JsonObject = { status: 'completed' },
  connection: Connection = sql.jobs,
): Promise<Onboarding | null> {
  const result = await transition(connection, 'onboarding_research_finish', {
    organizationId: org.organizationId,
    generation,
    outcome,
  });
  return maybeSchema.parse(result).onboarding;
}

export const FAILURE = { status: 'failed', error: { code: 'broken', message: 'It broke', retryable: true } } as const;

/** A new onboarding that the transitions brought into the state. */
export async function onboardingIn(sql: Sql, status: string, fields: JsonObject = {}): Promise<Onboarding> {
  let onboarding = await createOnboarding(sql, fields);
  const org = placeOf(onboarding);
  if (status === 'collecting') return onboarding;
  onboarding = await putSource(sql.api, org);
  onboarding = await step(sql.api, org, 'start');
  if (status === 'researching') return onboarding;
  const outcome = status === 'research_failed' ? FAILURE : { status: 'completed' };
  const finished = await finish(sql, org, onboarding.generation, outcome);
  if (!finished) throw new Error('the research is not under way');
  if (status === 'completed') return complete(sql.api, org, finished);
  if (status === 'discarded') await step(sql.api, org, 'discard');
  return finished;
}

export function complete(
  connection: Connection,
  org: OnboardingOrganization,
  onboarding: Onboarding,
  args: Partial<Omit<Arguments<'onboarding_complete'>, 'organizationId'>> = {},
): Promise<Onboarding> {
  return step(connection, org, 'complete', {
    reviewSha256: onboarding.review?.sha256,
    allowWarnings: false,
    documents: [{ scope: 'organization', documents: [document('facts.json')] }],
    ...args,
  });
}

/** An onboarding with a finding for an organization that was made without one. */
export async function insertOnboarding(sql: Sql, org: OnboardingOrganization): Promise<void> {
  const { organizationId } = org;
  await sql.owner.query(
    `insert into app.onboardings (organization_id, setup, status, review) values ($1, '{}', 'completed', '{}')`,
    [organizationId],
  );
  await sql.owner.query(
    `insert into app.research_findings (organization_id, origin, claim, source_ids) values ($1, 'job', 'c', '["x"]')`,
    [organizationId],
  );
}

export function putDisposition(
  sql: Sql,
  onboarding: Onboarding,
  key: string,
  disposition: string,
  departments: string[] = [],
): Promise<Onboarding> {
  return step(sql.api, placeOf(onboarding), 'disposition_put', {
    expectedGeneration: onboarding.generation,
    integrationKey: key,
    disposition,
    departments,
  });
}

export async function organizationOf(sql: Sql, onboarding: Onboarding) {
  const { rows } = await sql.owner.query('select * from app.organizations where id = $1', [onboarding.organization_id]);
  return rows[0];
}

/** A page as the research records it; nothing is stored for it. */
export function page(path: string) {
  return {
    status: 'ingested',
    kind: 'page',
    fileName: 'page.md',
    mediaType: 'text/markdown',
    sizeBytes: 4,
    sha256: '0'.repeat(64),
    storageKey: `sources/${randomUUID()}`,
    provenanceUrls: [`https://x.example${path}`],
    dedupeKey: `https://x.example${path}`,
  };
}
