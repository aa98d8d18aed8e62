import { z } from 'zod';
import { catalogRevision, catalogSchema } from '../../engine/catalog/index.ts';
import type { Config } from '../../engine/config.ts';
import { call } from '../../engine/db/call.ts';
import type { Database } from '../../engine/db/database.ts';
import { Problem } from '../../engine/db/problem.ts';
import { organizationNotFound } from '../../engine/db/scope.ts';
import { retryTransient } from '../http/errors.ts';
import { checkParts } from '../http/validation.ts';
import { resumedFire } from '../schedules/fires.ts';
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

const resultSchema = z.looseObject({ audit_entry_id: z.string() });
const idSchema = z.looseObject({ id: z.string() });
type TransitionResult = z.output<typeof resultSchema>;

export type AdminTransitions = Readonly<Record<keyof ReturnType<typeof decisions>, Decide>>;

type Services = Readonly<{ db: Database; config: Config }>;

/** The organization that a decision names; with one in the request's header there is no other. */
function organizationOf(args: Arguments, caller: Caller): string {
  const id = String(args['organizationId']);
  if (caller.organizationId !== null && caller.organizationId !== id.toLowerCase()) throw organizationNotFound();
  return id;
}

/** Who decides, for the audit log. */
function who({ admin, requestId }: Caller) {
  return { admin, requestId };
}

type Own = Readonly<{ organizationId: string } & ReturnType<typeof who>>;

function decisions({ db, config }: Services) {
  /** A transition that returns the row it changed, as `field`. */
  function ofRow(field: string, transition: (own: Own, args: Arguments) => Promise<TransitionResult>): Decide {
    return async (args, caller) => {
      const organizationId = organizationOf(args, caller);
      const result = await retryTransient(() => transition({ organizationId, ...who(caller) }, args));
      const { id } = idSchema.parse(result[field]);
      return { organizationId, subjectId: id, auditEntryId: result.audit_entry_id, outcome: result };
    };
  }

  /** A transition of a run request, which is named by its id. */
  function ofRequest(transition: (own: Own & { runRequestId: string }) => Promise<TransitionResult>): Decide {
    return async (args, caller) => {
      const organizationId = organizationOf(args, caller);
      const subjectId = String(args['runRequestId']);
      const own = { organizationId, runRequestId: subjectId, ...who(caller) };
      const result = await retryTransient(() => transition(own));
      return { organizationId, subjectId, auditEntryId: result.audit_entry_id, outcome: result };
    };
  }

  const taskRef = (args: Arguments) => String(args['taskRef']);
  const scheduleRef = (args: Arguments) => String(args['scheduleRef']);

  return {
    stopDispatch: ofRow('organization', (own) => call(db, 'admin_dispatch_stop', own, resultSchema)),
    resumeDispatch: ofRow('organization', (own) => call(db, 'admin_dispatch_resume', own, resultSchema)),
    suspendOrganization: ofRow('organization', (own) => call(db, 'admin_organization_suspend', own, resultSchema)),
    reactivateOrganization: ofRow('organization', (own) =>
      call(db, 'admin_organization_reactivate', own, resultSchema),
    ),
    cancelTask: ofRow('task', (own, args) =>
      call(db, 'admin_task_cancel', { ...own, taskRef: taskRef(args) }, resultSchema),
    ),
    retryTask: ofRow('task', (own, args) =>
      call(db, 'admin_task_retry', { ...own, taskRef: taskRef(args) }, resultSchema),
    ),
    pauseSchedule: ofRow('schedule', (own, args) =>
      call(db, 'admin_schedule_pause', { ...own, scheduleRef: scheduleRef(args) }, resultSchema),
    ),

    async resumeSchedule(args: Arguments, caller: Caller) {
      const ref = scheduleRef(args);
      const resumed = await resumedFire(db, organizationOf(args, caller), ref);
      const resume = ofRow('schedule', (own) =>
        call(db, 'admin_schedule_resume', { ...own, scheduleRef: ref, ...resumed }, resultSchema),
      );
      return resume(args, caller);
    },

    requeueRunRequest: ofRequest((own) => call(db, 'admin_run_request_requeue', own, resultSchema)),
    expireLease: ofRequest((own) =>
      call(
        db,
        'admin_lease_expire',
        {
          ...own,
          maxAttempts: config.runRequestMaxAttempts,
          backoffSeconds: config.retryBackoffSeconds,
          backoffMaxSeconds: config.retryBackoffMaxSeconds,
        },
        resultSchema,
      ),
    ),

    async publishCatalogRevision(args: Arguments, caller: Caller): Promise<Decided> {
      if (caller.organizationId !== null) {
        const message = 'A catalog is published for all organizations: leave X-Organization-Id out.';
        throw new Problem(400, 'validation_failed', message);
      }
      const { catalog } = checkParts({ catalog: [catalogSchema, args['catalog']] });
      const revision = catalogRevision(catalog);
      const own = { revision, catalog, ...who(caller) };
      const result = await retryTransient(() => call(db, 'admin_catalog_publish', own, resultSchema));
      return { organizationId: null, subjectId: revision, auditEntryId: result.audit_entry_id, outcome: result };
    },
  } as const;
}

/** The decisions of administrators: each is one transition, which writes the audit log in its own transaction. */
export function adminTransitions(services: Services): AdminTransitions {
  return decisions(services);
}
