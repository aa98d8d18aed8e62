import { z } from 'zod';
import { catalogRevision, catalogSchema } from '../../engine/catalog/index.ts';
import type { Config } from '../../engine/config.ts';
import { type Argument, call, json } from '../../engine/db/call.ts';
import type { Database } from '../../engine/db/database.ts';
import type { Notifier } from '../../engine/db/notify.ts';
import { Problem } from '../../engine/db/problem.ts';
import { organizationNotFound } from '../../engine/db/scope.ts';
import { CHAT_CHANNEL, chatPayload } from '../chats/events/hub.ts';
import { retryTransient } from '../http/errors.ts';
import { checkParts } from '../http/validation.ts';
import { PULL_CHANNEL } from '../run_requests/pull_broker.ts';
import { resumedFire } from '../schedules/schema.ts';
import type { AdminContext } from './context.ts';

/** Which rows a decision was about: the payload of its mutation reads them. */
export type Decided = Readonly<{
  organizationId: string | null;
  subjectId: string;
  auditEntryId: string;
  /** What the transition says besides. */
  outcome: Readonly<Record<string, unknown>>;
}>;

type Arguments = Readonly<Record<string, unknown>>;
type Caller = AdminContext;
type Decide = (args: Arguments, caller: Caller) => Promise<Decided>;

const answerSchema = z.looseObject({ audit_entry_id: z.string() });
const idSchema = z.looseObject({ id: z.string() });
type Answer = z.output<typeof answerSchema>;

export type AdminTransitions = Readonly<Record<keyof ReturnType<typeof decisions>, Decide>>;

type Services = Readonly<{ db: Database; config: Config; notifier: Notifier }>;

/** The organization that a decision names; with one in the request's header there is no other. */
function organizationOf(args: Arguments, caller: Caller): string {
  const id = String(args['organizationId']);
  if (caller.organizationId !== null && caller.organizationId !== id.toLowerCase()) throw organizationNotFound();
  return id;
}

function decisions({ db, config, notifier }: Services) {
  /** Calls one transition, and wakes whoever may have waited for what it did, also where it refused. */
  async function decide(name: string, args: Readonly<Record<string, Argument>>, caller: Caller): Promise<Answer> {
    const who = { p_admin: caller.admin, p_request_id: caller.requestId };
    try {
      return await retryTransient(() => call(db, name, { ...args, ...who }, answerSchema));
    } finally {
      notifier.mark(PULL_CHANNEL);
    }
  }

  /** A transition that answers the row it changed, as `field`. */
  function ofRow(name: string, field: string, extra: (args: Arguments) => Readonly<Record<string, Argument>>): Decide {
    return async (args, caller) => {
      const organizationId = organizationOf(args, caller);
      const answer = await decide(name, { p_organization_id: organizationId, ...extra(args) }, caller);
      const { id } = idSchema.parse(answer[field]);
      return { organizationId, subjectId: id, auditEntryId: answer.audit_entry_id, outcome: answer };
    };
  }

  /** A transition of a run request, which is named by its id. */
  function ofRequest(name: string, extra: Readonly<Record<string, Argument>>): Decide {
    return async (args, caller) => {
      const organizationId = organizationOf(args, caller);
      const subjectId = String(args['runRequestId']);
      const own = { p_organization_id: organizationId, p_run_request_id: subjectId, ...extra };
      const answer = await decide(name, own, caller);
      const chatId = answer['chatId'];
      if (typeof chatId === 'string') notifier.mark(CHAT_CHANNEL, chatPayload(organizationId, chatId));
      return { organizationId, subjectId, auditEntryId: answer.audit_entry_id, outcome: answer };
    };
  }

  const taskRef = (args: Arguments) => ({ p_task_ref: String(args['taskRef']) });
  const scheduleRef = (args: Arguments) => ({ p_schedule_ref: String(args['scheduleRef']) });

  return {
    stopDispatch: ofRow('admin_dispatch_stop', 'organization', () => ({})),
    resumeDispatch: ofRow('admin_dispatch_resume', 'organization', () => ({})),
    suspendOrganization: ofRow('admin_organization_suspend', 'organization', () => ({})),
    reactivateOrganization: ofRow('admin_organization_reactivate', 'organization', () => ({})),
    cancelTask: ofRow('admin_task_cancel', 'task', taskRef),
    retryTask: ofRow('admin_task_retry', 'task', taskRef),
    pauseSchedule: ofRow('admin_schedule_pause', 'schedule', scheduleRef),

    async resumeSchedule(args: Arguments, caller: Caller) {
      const fire = await resumedFire(db, organizationOf(args, caller), String(args['scheduleRef']));
      const resume = ofRow('admin_schedule_resume', 'schedule', () => ({ ...scheduleRef(args), p_next_run_at: fire }));
      return resume(args, caller);
    },

    requeueRunRequest: ofRequest('admin_run_request_requeue', {}),
    expireLease: ofRequest('admin_lease_expire', {
      p_max_attempts: config.runRequestMaxAttempts,
      p_backoff_seconds: config.retryBackoffSeconds,
      p_backoff_max_seconds: config.retryBackoffMaxSeconds,
    }),

    async publishCatalogRevision(args: Arguments, caller: Caller): Promise<Decided> {
      if (caller.organizationId !== null) {
        const message = 'A catalog is published for all organizations: leave X-Organization-Id out.';
        throw new Problem(400, 'validation_failed', message);
      }
      const { catalog } = checkParts({ catalog: [catalogSchema, args['catalog']] });
      const revision = catalogRevision(catalog);
      const own = { p_revision: revision, p_catalog: json(catalog) };
      const answer = await decide('admin_catalog_publish', own, caller);
      return { organizationId: null, subjectId: revision, auditEntryId: answer.audit_entry_id, outcome: answer };
    },
  } as const;
}

/** The decisions of administrators: each is one transition, which writes the audit log in its own transaction. */
export function adminTransitions(services: Services): AdminTransitions {
  return decisions(services);
}
