import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Recorder } from './facts.ts';
import type { Owner } from './owner.ts';
import { INPUT_PATH, OUTPUT_PATH } from './protocol.ts';
import type { Random } from './random.ts';

const BACKLOG_LOOK_MS = 20;

/** Enough for any number of kills: in the end every task is completed. */
const budget = { maxAgentRuns: 10_000, maxAttemptsPerPhase: 100 };

export type LoadOptions = Readonly<{
  owner: Owner;
  random: Random;
  recorder: Recorder;
  /** Over all organizations; initiatives count. */
  tasks: number;
  /** Creation waits while so many are open, so that it goes on while faults do. */
  backlog: number;
  completed: () => number;
  signal: AbortSignal;
}>;

type Organization = Readonly<{
  name: string;
  share: number;
  capacity: number;
  profiles: Readonly<Record<string, number>>;
}>;

/** A tight one, some in between, one whose profiles are tighter than itself. */
const organizations: readonly Organization[] = [
  { name: 'one', share: 1, capacity: 1, profiles: { operator: 5, growth: 1 } },
  { name: 'two', share: 2, capacity: 2, profiles: { operator: 2, growth: 2 } },
  { name: 'four', share: 3, capacity: 4, profiles: { operator: 1, growth: 5 } },
  { name: 'eight', share: 4, capacity: 8, profiles: { operator: 3, growth: 2 } },
];

/** How many tasks each organization gets; the last one what is left. */
export function shares(tasks: number): number[] {
  const whole = organizations.reduce((sum, { share }) => sum + share, 0);
  const given = organizations.slice(0, -1).map(({ share }) => Math.floor((tasks * share) / whole));
  return [...given, tasks - given.reduce((sum, share) => sum + share, 0)];
}

function taskBody(title: string, random: Random, dependsOn: readonly string[]): object {
  return {
    title,
    ownerProfileKey: random.chance(0.6) ? 'operator' : 'growth',
    priority: random.between(0, 3),
    dependsOn,
    ...(random.chance(0.05) ? { scheduledAt: new Date(Date.now() + random.between(200, 2_000)).toISOString() } : {}),
    spec: {
      objective: 'Hand in what you were given',
      inputs: [{ kind: 'inline', path: INPUT_PATH, text: JSON.stringify({ title }) }],
      acceptanceCriteria: [
        {
          kind: 'output_file',
          path: OUTPUT_PATH,
          checks: [
            { kind: 'media_type', anyOf: ['application/json'] },
            { kind: 'json_pointer', pointer: '/title', operator: 'eq', value: title },
          ],
        },
      ],
      budget,
    },
  };
}

/** Makes an organization and, one after another, its tasks: single ones and initiatives, many waiting for earlier ones. */
async function fill(organization: Organization, tasks: number, options: LoadOptions): Promise<void> {
  const { owner, recorder, completed, backlog, signal } = options;
  const random = options.random.fork(organization.name);
  const organizationId = randomUUID();
  const home = `/organizations/${organizationId}`;
  const made: string[] = [];

  async function create(kind: 'task' | 'initiative', body: (title: string) => object): Promise<string> {
    const number = made.length + 1;
    const title = `${organization.name}-${number}-${organizationId}`;
    const id = await owner.create(`${home}/tasks`, title, { kind, ...body(title) });
    recorder.create({ organizationId, title, kind, id });
    return id;
  }

  function some(ids: readonly string[], probability: number): string[] {
    if (ids.length === 0 || !random.chance(probability)) return [];
    return [...new Set([random.pick(ids), random.pick(ids)])];
  }

  async function single(): Promise<void> {
    const dependsOn = some(made.slice(-20), 0.3);
    made.push(await create('task', (title) => taskBody(title, random, dependsOn)));
  }

  /** Made while dispatch is stopped: its first child would else complete it before the second is there. */
  async function initiative(children: number): Promise<void> {
    await owner.patch(`${home}/work-dispatch`, { stopped: true });
    const ownerProfileKey = 'operator';
    const parentId = await create('initiative', (title) => ({ title, ownerProfileKey, spec: { budget } }));
    const outside = made.slice(-20);
    made.push(parentId);
    const below: string[] = [];
    for (let child = 0; child < children; child += 1) {
      const dependsOn = [...new Set([...some(below, 0.4), ...some(outside, 0.3)])];
      const id = await create('task', (title) => ({ parentId, ...taskBody(title, random, dependsOn) }));
      below.push(id);
      made.push(id);
    }
    await owner.patch(`${home}/work-dispatch`, { stopped: false });
  }

  const limits = { maxConcurrentRuns: organization.capacity };
  const slug = `${organization.name}-${organizationId.slice(0, 8)}`;
  await owner.create(home, home, { slug, name: organization.name, config: { limits } });
  for (const [key, maxConcurrentRuns] of Object.entries(organization.profiles)) {
    const kind = key === 'operator' ? { kind: 'operator' } : { kind: 'department', department: 'growth' };
    await owner.create(`${home}/agent-profiles`, key, { key, name: key, ...kind, config: { maxConcurrentRuns } });
  }
  for (let unit = 0; made.length < tasks; unit += 1) {
    while (recorder.created.length - completed() >= backlog) await sleep(BACKLOG_LOOK_MS, undefined, { signal });
    const left = tasks - made.length;
    if (left >= 3 && (unit === 1 || random.chance(0.08))) await initiative(Math.min(left - 1, random.between(2, 5)));
    else await single();
  }
}

/** Makes all organizations and tasks over HTTP, side by side; resolves when the last response is there. */
export async function createLoad(options: LoadOptions): Promise<void> {
  const counts = shares(options.tasks);
  await Promise.all(organizations.map((organization, index) => fill(organization, counts[index] ?? 0, options)));
}
