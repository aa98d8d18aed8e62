import { context, lambda, loadMany, type Step } from 'postgraphile/grafast';
import { extendSchema } from 'postgraphile/utils';
import './grafast_context.ts';

type Count = Readonly<{ organization_id: string }> & Readonly<Record<string, string | number>>;
type Access = Pick<Grafast.Context, 'pgSettings' | 'withPgClient'>;

/** In the place of an organization's id. */
const ALL = 'all';

const OF = '(organization_id = any ($1::uuid[]) or $1 is null)';

/** By state, of the organizations of $1, or of all of them. Each reads one index, or the counters that the dispatch keeps. */
const queries = {
  tasks: `select organization_id, status, count(*)::text as count from app.tasks where ${OF} group by 1, 2`,
  // As in the lists of runs: turns of chats are not counted.
  runs: `select organization_id, status, count(*)::text as count from app.runs where kind = 'task' and ${OF} group by 1, 2`,
  requests: `select d.organization_id, d.kind, d.capacity, d.held, coalesce(sum(l.ready), 0)::int as ready
    from app.dispatch d
    left join app.dispatch_lanes l on l.organization_id = d.organization_id and l.kind = d.kind
    where ${OF.replace('organization_id', 'd.organization_id')} group by d.organization_id, d.kind, d.capacity, d.held`,
} as const;

/** One statement for all organizations that a page of them asks about. */
function load(name: keyof typeof queries) {
  return async (ids: readonly string[], { shared }: { shared: Access }): Promise<readonly Count[][]> => {
    const named = ids.includes(ALL) ? null : [...new Set(ids)];
    const { rows } = await shared.withPgClient(shared.pgSettings, (client) =>
      client.query<Count>({ text: `${queries[name]} order by 1, 2`, values: [named as string[]] }),
    );
    return ids.map((id) => (id === ALL ? [...rows] : rows.filter((row) => row.organization_id === id)));
  };
}

const loaders = { tasks: load('tasks'), runs: load('runs'), requests: load('requests') };

function counts($organizationId: Step, name: keyof typeof queries) {
  const shared = { pgSettings: context().get('pgSettings'), withPgClient: context().get('withPgClient') };
  return loadMany($organizationId, { load: loaders[name] as never, shared });
}

type Parent = Step & { get(name: string): Step };
type Args = { getRaw(name: string): Step };

/** What is null is not looked up: where neither the argument nor the request names one, all stands for it. */
function given(args: Args): Step {
  const ids = [args.getRaw('organizationId'), context().get('organizationId')] as const;
  return lambda(ids, ([named, ofRequest]) => named ?? ofRequest ?? ALL);
}

/** How much there is of what, by state. */
export const countsPlugin = extendSchema(
  {
    typeDefs: `
    """How many tasks of an organization are in a state."""
    type TaskCount {
      organizationId: UUID!
      status: TaskStatus!
      count: BigInt!
    }
    """How many runs of tasks of an organization are in a state."""
    type RunCount {
      organizationId: UUID!
      status: RunStatus!
      count: BigInt!
    }
    """What waits and what is held of an organization, by the counters that a pull goes by."""
    type RunRequestCount {
      organizationId: UUID!
      kind: DispatchKind!
      """Published: a worker may take them."""
      ready: Int!
      """Leased or started."""
      held: Int!
      """How many may be held at once."""
      capacity: Int!
    }
    extend type Organization {
      """Its tasks by state."""
      taskCounts: [TaskCount!]!
      """Its runs of tasks by state."""
      runCounts: [RunCount!]!
      """What waits for workers and what they hold."""
      runRequestCounts: [RunRequestCount!]!
    }
    extend type Query {
      """Tasks by organization and state: of one organization, or of all that are seen."""
      taskCounts(organizationId: UUID): [TaskCount!]!
      """Runs of tasks by organization and state: of one organization, or of all that are seen."""
      runCounts(organizationId: UUID): [RunCount!]!
      """What waits for workers and what they hold: of one organization, or of all that are seen."""
      runRequestCounts(organizationId: UUID): [RunRequestCount!]!
    }`,
    objects: {
      Organization: {
        plans: {
          taskCounts: ($organization: Parent) => counts($organization.get('id'), 'tasks'),
          runCounts: ($organization: Parent) => counts($organization.get('id'), 'runs'),
          runRequestCounts: ($organization: Parent) => counts($organization.get('id'), 'requests'),
        },
      },
      Query: {
        plans: {
          taskCounts: (_: Step, args: Args) => counts(given(args), 'tasks'),
          runCounts: (_: Step, args: Args) => counts(given(args), 'runs'),
          runRequestCounts: (_: Step, args: Args) => counts(given(args), 'requests'),
        },
      },
      TaskCount: { plans: { organizationId: ($count: Parent) => $count.get('organization_id') } },
      RunCount: { plans: { organizationId: ($count: Parent) => $count.get('organization_id') } },
      RunRequestCount: { plans: { organizationId: ($count: Parent) => $count.get('organization_id') } },
    },
  },
  'AdminCounts',
);
