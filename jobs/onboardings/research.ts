import { sql } from 'slonik';
import { z } from 'zod';
import { call, ignored } from '../../engine/db/call.ts';
import { scoped } from '../../engine/db/scope.ts';
import type { Json } from '../../engine/db/sql_types.ts';
import { createWebClient, type WebClient } from '../../engine/net/index.ts';
import {
  type Claim,
  keepPage,
  ModelError,
  type ModelSettings,
  readEvidence,
  recallPage,
  siteClaims,
  summarize,
} from '../../engine/research/index.ts';
import { domainBlocker, READ_LIMITS, readWebsite } from '../../engine/website/index.ts';
import type { Payload } from '../catalog.ts';
import type { JobContext, JobHandler } from '../runner/handler.ts';

/** Tries of one job, crashes included, before the attempt fails and the inbox says so: about half a minute. */
const TRIES = 4;
/** A job that kills its process each time never says that it failed. */
const DEADLY_TRIES = 8;
const MODEL_TRIES = 2;
const REPORTED = 3;

const OURS = {
  code: 'internal_error',
  message: 'The research failed on our side. Retry it in a few minutes.',
  retryable: true,
} as const;

const begunSchema = z.object({
  onboarding: z
    .object({
      setup: z.object({ website: z.string().nullish() }),
      research_started_at: z.string(),
      sources: z.array(z.unknown()),
    })
    .nullable(),
});
type Begun = NonNullable<z.output<typeof begunSchema>['onboarding']>;

type Warning = Readonly<{ code: string; message: string }>;
type Findings = { claims: Claim[]; warnings: Warning[] };

/** Another attempt has begun, the onboarding was discarded, or the organization deleted: nothing is left to do. */
class AttemptOver extends Error {
  override name = 'AttemptOver';
}

type Research = JobContext &
  Payload<'onboardings__research'> &
  Readonly<{ web: WebClient; begun: Begun; over: AbortSignal; pageIds: string[] }>;

async function blockedDomains({ db, organizationId }: Research): Promise<string[]> {
  const row = await db.maybeOne(
    scoped(
      organizationId,
      z.object({ domains: z.array(z.string()).nullable() }),
      sql.fragment`
        select o.constraints -> 'blockedDomains' as domains
        from app.organizations o where o.id = scope.organization_id`,
    ),
  );
  return row?.domains ?? [];
}

/** Reads the website and keeps each page before the next: whoever goes on after a crash finds it, and asks for no page twice. */
async function readSite(research: Research, website: string): Promise<Findings> {
  const { web, organizationId, generation, begun, over, pageIds, config } = research;
  const claims: Claim[] = [];
  const { warnings, pages, limit } = await readWebsite({
    client: web,
    website,
    blocked: domainBlocker(await blockedDomains(research)),
    signal: over,
    // A half is left for the rest of the attempt.
    limits: { totalMs: Math.min(READ_LIMITS.totalMs, config.researchSeconds * 500) },
    recall: (address) => recallPage(research, organizationId, begun.research_started_at, address),
    async keep(kept) {
      const id = await keepPage(research, organizationId, { generation }, kept);
      if (id === null) throw new AttemptOver();
      if (pageIds.length === 0) claims.push(...siteClaims(kept.page, id));
      if (!pageIds.includes(id)) pageIds.push(id);
    },
  });
  research.log.info({ organizationId, pages, limit }, 'a website was read');
  return { claims, warnings: warnings.map(({ code, message }) => ({ code, message })) };
}

async function askModel(research: Research, model: ModelSettings): Promise<Findings> {
  const { organizationId, over, pageIds, config, log } = research;
  const evidence = await readEvidence(research, organizationId, pageIds, over);
  // The operator chose this server, and may run it next door.
  const client = createWebClient({ allowPrivateAddresses: true });
  // Both tries together leave time to write down what they brought.
  const totalMs = config.researchSeconds * 200;
  try {
    for (let turn = 1; ; turn += 1) {
      try {
        const { claims, dropped } = await summarize(client, model, evidence, { signal: over, totalMs });
        const warnings = dropped.length === 0 ? [] : [droppedWarning(dropped)];
        return { claims: [...claims], warnings };
      } catch (error) {
        if (!(error instanceof ModelError)) throw error;
        log.warn({ organizationId, err: error }, 'the model does not summarize');
        if (turn < MODEL_TRIES) continue;
        const message = `The evidence was not summarized. ${error.message}`;
        return { claims: [], warnings: [{ code: 'summary_failed', message }] };
      }
    }
  } finally {
    await client.close();
  }
}

function droppedWarning(dropped: readonly string[]): Warning {
  const shown = dropped.slice(0, REPORTED).map((claim) => `“${claim}”`);
  const more = dropped.length > shown.length ? ', and others' : '';
  const message = `Left out, because no evidence was named for them: ${shown.join(', ')}${more}.`;
  return { code: 'claims_without_evidence', message };
}

async function findingsOf(research: Research): Promise<Findings> {
  const { begun, config } = research;
  const { website } = begun.setup;
  if (!website && begun.sources.length === 0) {
    const message = 'There is no website and no source, so there was nothing to research.';
    return { claims: [], warnings: [{ code: 'no_evidence', message }] };
  }
  const site = website ? await readSite(research, website) : { claims: [], warnings: [] };
  const model = config.researchModel ? await askModel(research, config.researchModel) : { claims: [], warnings: [] };
  return { claims: [...site.claims, ...model.claims], warnings: [...site.warnings, ...model.warnings] };
}

async function finish(context: JobContext, payload: Payload<'onboardings__research'>, outcome: Json): Promise<void> {
  const args = {
    organizationId: payload.organizationId,
    generation: payload.generation,
    outcome,
  };
  await call(context.db, 'onboarding_research_finish', args, ignored);
}

/**
 * Research of an onboarding (docs/interface.md 3.2): reads the website, keeps what it read as evidence, lets a model say what the
 * evidence says where one is set, and hands all of it in at once. Every write compares the generation. It may die
 * anywhere: the next run finds the pages that are kept, and only the last write changes the state. A website or model
 * that does not do its part is a warning; what goes wrong on our side is tried again, then the attempt has failed.
 */
export const onboardingsResearch: JobHandler<'onboardings__research'> = async (payload, context) => {
  const { organizationId, generation } = payload;
  const { db, config, signal, log } = context;
  const args = { organizationId, generation };
  const { onboarding: begun } = await call(db, 'onboarding_research_begin', args, begunSchema);
  if (!begun) return 'done';
  if (context.attempt > DEADLY_TRIES) {
    log.error({ organizationId, generation }, 'the research of an onboarding does not come to an end');
    await finish(context, payload, { status: 'failed', error: OURS });
    return 'done';
  }
  const late = AbortSignal.timeout(config.researchSeconds * 1_000);
  const web = createWebClient({ allowPrivateAddresses: config.allowPrivateAddresses });
  try {
    const over = AbortSignal.any([signal, late]);
    const { claims, warnings } = await findingsOf({ ...context, ...payload, web, begun, over, pageIds: [] });
    const findings = claims.map(({ claim, sourceIds }) => ({ claim, evidence: sourceIds }));
    await finish(context, payload, { status: 'completed', findings, warnings });
    return 'done';
  } catch (error) {
    if (error instanceof AttemptOver) return 'done';
    if (signal.aborted) return 'unfinished';
    if (!late.aborted && context.attempt < TRIES) throw error;
    log.error({ err: error, organizationId, generation }, 'the research of an onboarding has failed');
    const message = `The research took longer than ${config.researchSeconds} seconds. Retry it.`;
    const failure = late.aborted ? { code: 'timed_out', message, retryable: true } : OURS;
    await finish(context, payload, { status: 'failed', error: failure });
    return 'done';
  } finally {
    await web.close();
  }
};
