import type { PgResource } from 'postgraphile/@dataplan/pg';
import { context, type FieldArgs, get, object, type Step, sideEffect } from 'postgraphile/grafast';
import { extendSchema } from 'postgraphile/utils';
import type { AdminTransitions, Decided } from '../transitions.ts';
import './grafast_context.ts';

/** The row that a decision was about: which table, and by which columns beside the organization. */
type Subject = Readonly<{ field: string; table: string; type: string }>;

const subjects = {
  organization: { field: 'organization', table: 'organizations', type: 'Organization' },
  task: { field: 'task', table: 'tasks', type: 'Task' },
  runRequest: { field: 'runRequest', table: 'run_requests', type: 'RunRequest' },
  schedule: { field: 'schedule', table: 'schedules', type: 'Schedule' },
  catalog: { field: 'agentCatalog', table: 'agent_catalogs', type: 'AgentCatalog' },
} as const satisfies Record<string, Subject>;

type Mutation = Readonly<{
  subject: keyof typeof subjects;
  /** After `organizationId: UUID!`. */
  args?: string;
  /** Further fields of the payload: name and type, and how the transition calls them. */
  outcome?: Readonly<Record<string, readonly [type: string, key: string]>>;
  description: string;
}>;

const task = 'taskRef: String!';
const schedule = 'scheduleRef: String!';
const runRequest = 'runRequestId: UUID!';

const mutations: Readonly<Record<keyof AdminTransitions, Mutation>> = {
  stopDispatch: {
    subject: 'organization',
    description: 'Stops work dispatch: nothing more is published, what is published or running goes on.',
  },
  resumeDispatch: {
    subject: 'organization',
    outcome: { publishedRunRequests: ['Int!', 'published_run_requests'] },
    description: 'Resumes work dispatch: what is due is published.',
  },
  cancelTask: {
    subject: 'task',
    args: task,
    description: 'Cancels a task (by its UUID or identifier) with all below it.',
  },
  retryTask: {
    subject: 'task',
    args: task,
    description: 'Retries a task that failed, or that a failure cancelled: what its failure touched is open again.',
  },
  expireLease: {
    subject: 'runRequest',
    args: runRequest,
    outcome: { outcome: ['String!', 'outcome'] },
    description:
      'Ends the lease of a run request before its time, as its expiry would: whoever held it can change nothing any more.',
  },
  requeueRunRequest: {
    subject: 'runRequest',
    args: runRequest,
    outcome: { outcome: ['String!', 'outcome'] },
    description:
      'Gives a waiting or claimed run request to the next worker: its backoff is dropped, its claim is revoked. One that was started is ended by expireLease.',
  },
  pauseSchedule: {
    subject: 'schedule',
    args: schedule,
    description: 'Pauses a schedule (by its UUID or key); what it misses is not made up for.',
  },
  resumeSchedule: {
    subject: 'schedule',
    args: schedule,
    description: 'Resumes a schedule from its first fire after now.',
  },
  suspendOrganization: {
    subject: 'organization',
    description: 'Suspends an organization: nothing is handed out, claims end, started runs may finish.',
  },
  reactivateOrganization: { subject: 'organization', description: 'Lifts the suspension of an organization.' },
  publishCatalogRevision: {
    subject: 'catalog',
    args: 'catalog: JSON!',
    outcome: { published: ['Boolean!', 'published'] },
    description:
      'Publishes a template catalog for all organizations. Its revision is the digest of its content; one that is published already stays what it is.',
  },
};

const names = Object.keys(mutations) as (keyof AdminTransitions)[];
const payloadName = (name: string) => `${name.charAt(0).toUpperCase()}${name.slice(1)}Payload`;

function typesOf(name: keyof AdminTransitions): string {
  const { subject, args, outcome = {}, description } = mutations[name];
  const { field, type } = subjects[subject];
  const all = [...(subject === 'catalog' ? [] : ['organizationId: UUID!']), ...(args ? [args] : [])].join(', ');
  const further = Object.entries(outcome).map(([key, [kind]]) => `${key}: ${kind}`);
  return `
    type ${payloadName(name)} {
      """As it is now."""
      ${field}: ${type}
      """The entry of the audit log that was written with it."""
      auditEntryId: UUID!
      ${further.join('\n')}
    }
    extend type Mutation {
      """${description}"""
      ${name}(${all}): ${payloadName(name)}
    }`;
}

/** Calls the transition once, then reads its row: what the caller asks about it is known only after the change. */
function planOf(name: keyof AdminTransitions, resource: PgResource) {
  const { subject, outcome = {} } = mutations[name];
  return (_: Step, args: FieldArgs) => {
    const $context = object({
      organizationId: context().get('organizationId'),
      admin: context().get('admin'),
      requestId: context().get('requestId'),
    });
    const $decided = sideEffect(
      [context().get('transitions'), args.getRaw(), $context] as const,
      ([transitions, given, caller]): Promise<Decided> =>
        transitions[name](given as Readonly<Record<string, unknown>>, caller),
    );
    const $id = get($decided, 'subjectId');
    const key =
      subject === 'organization'
        ? { id: $id }
        : subject === 'catalog'
          ? { revision: $id }
          : { organization_id: get($decided, 'organizationId'), id: $id };
    const $outcome = get($decided, 'outcome');
    return object({
      [subjects[subject].field]: resource.get(key),
      auditEntryId: get($decided, 'auditEntryId'),
      ...Object.fromEntries(Object.entries(outcome).map(([field, [, key]]) => [field, get($outcome, key)])),
    });
  };
}

/** The few things that administrators change, by the same transitions as everybody else, each with an audit entry. */
export const mutationsPlugin = extendSchema((build) => {
  const resources = build.pgResources as Readonly<Record<string, PgResource>>;
  const resourceOf = (name: keyof AdminTransitions): PgResource => {
    const { table } = subjects[mutations[name].subject];
    const resource = resources[table];
    if (!resource) throw new Error(`the schema has no ${table}`);
    return resource;
  };
  return {
    typeDefs: names.map(typesOf).join('\n'),
    objects: {
      Mutation: { plans: Object.fromEntries(names.map((name) => [name, planOf(name, resourceOf(name))])) },
    },
  };
}, 'AdminMutations');
