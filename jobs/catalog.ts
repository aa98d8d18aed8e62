import { z } from 'zod';
import { ASSESSMENTS } from '../engine/context/index.ts';

const nothing = z.strictObject({});

/** Every task that a job may name, with its payload. SQL adds jobs by `app.enqueue`, the clock by `crontab.ts`. */
export const catalog = {
  dispatch: nothing,
  actions__execute: nothing,
  /** `late`: the second pass, for what was being uploaded when the first went by. */
  organizations__delete: z.strictObject({ organizationId: z.uuid(), late: z.boolean().default(false) }),
  actions__clean: nothing,
  /** `after`: the last object that an earlier job has looked at. */
  actions__clean_files: z.strictObject({ organizationId: z.uuid(), after: z.string().optional() }),
  chats__clean: nothing,
  messages__index_chunks: nothing,
  idempotency_keys__clean: nothing,
  integrations__check: nothing,
  integrations__refresh: nothing,
  integrations__clean: nothing,
  /** `helper`: how many processes already have as much as they take. */
  insights__collect: z.strictObject({ helper: z.int().min(0).default(0) }),
  rate_limits__clean: nothing,
  currency_rates__collect: nothing,
  storage__clean: nothing,
  runner__check: nothing,
  /** `generation`: of the attempt; a job of an attempt that is over does nothing. */
  onboardings__research: z.strictObject({ organizationId: z.uuid(), generation: z.int() }),
  context__ingest_sources: z.strictObject({ organizationId: z.uuid() }),
  context__assess_health: z.strictObject({ organizationId: z.uuid(), assessment: z.enum(ASSESSMENTS) }),
  context__schedule_health: nothing,
  /** `after`: the last file that an earlier job has looked at. */
  context__clean_files: z.strictObject({ organizationId: z.uuid(), after: z.string().optional() }),
  insights__compact: nothing,
  insights__clean: nothing,
  insights__clean_units: nothing,
  /** `after`: the last file that an earlier job has looked at. */
  insights__clean_files: z.strictObject({ organizationId: z.uuid(), after: z.string().optional() }),
} as const satisfies Readonly<Record<string, z.ZodType>>;

export type JobName = keyof typeof catalog;
export type Payload<N extends JobName> = z.output<(typeof catalog)[N]>;

/** What cannot be run: the job fails with this message. */
export class JobError extends Error {
  override name = 'JobError';
}

export function isJobName(name: string): name is JobName {
  return Object.hasOwn(catalog, name);
}

/** The crontab adds when it was due; no task asks for it. */
const fromClock = z.looseObject({ _cron: z.unknown() });

function withoutClock(payload: unknown): unknown {
  const { data } = fromClock.safeParse(payload);
  if (!data) return payload;
  const { _cron, ...rest } = data;
  return rest;
}

/**
 * The payload of a job, checked.
 * @throws JobError that names the task and what is wrong
 */
export function parsePayload<N extends JobName>(name: N, payload: unknown): Payload<N> {
  if (!isJobName(name)) throw new JobError(`there is no task ${JSON.stringify(name)}`);
  const parsed = catalog[name].safeParse(withoutClock(payload ?? {}));
  if (!parsed.success) throw new JobError(`wrong payload of ${name}: ${z.prettifyError(parsed.error)}`);
  return parsed.data as Payload<N>;
}
