import fc from 'fast-check';
import { brokenInvariants } from '../invariants.ts';
import { Refusal, type Sql, transition } from '../transitions.ts';
import { ACTION_OPERATIONS } from './action_operations.ts';
import { drain } from './drain.ts';
import { type Picks, OPERATIONS as WORK } from './operations.ts';
import { checkCapacity, createWorld, heldNow, Violation, type World } from './world.ts';

const OPERATIONS = { ...WORK, ...ACTION_OPERATIONS };

/** What callers try again by themselves. */
const TRANSIENT = ['40001', '40P01', '55P03'];

type Move = Readonly<{ name: string; picks: readonly number[] }>;

/** One operation, or two at once; those named come four times as often. */
function stepOf(often: readonly string[]): fc.Arbitrary<readonly Move[]> {
  const move: fc.Arbitrary<Move> = fc.record({
    name: fc.oneof(
      ...Object.entries(OPERATIONS).map(([name, [weight]]) => ({
        weight: weight * (often.includes(name) ? 4 : 1),
        arbitrary: fc.constant(name),
      })),
    ),
    picks: fc.array(fc.nat(9_999), { minLength: 10, maxLength: 10 }),
  });
  return fc.oneof({ weight: 4, arbitrary: fc.tuple(move) }, { weight: 1, arbitrary: fc.tuple(move, move) });
}

function picksOf(numbers: readonly number[]): Picks {
  let org = 0;
  const next = () => numbers[org++ % numbers.length] ?? 0;
  return {
    number: (limit) => next() % limit,
    of: (list) => list[next() % (list.length || 1)],
  };
}

/** Refusals are results. Everything else is a fault: a violation, or an error of the database. */
async function take(world: World, { name, picks }: Move): Promise<void> {
  try {
    await OPERATIONS[name]?.[1](world, picksOf(picks));
  } catch (error) {
    if (error instanceof Refusal || TRANSIENT.includes(String((error as { code?: string }).code))) return;
    throw error;
  }
}

async function takeStep(world: World, moves: readonly Move[]): Promise<void> {
  world.deadBefore = new Set(world.dead);
  world.paired = moves.length > 1;
  const before = await heldNow(world);
  const done = await Promise.allSettled(moves.map((one) => take(world, one)));
  for (const one of done) if (one.status === 'rejected') throw one.reason;
  checkCapacity(before, await heldNow(world));
  const broken = await brokenInvariants(world.sql);
  if (Object.keys(broken).length > 0) throw new Violation(`broken: ${JSON.stringify(broken)}`);
}

export type Bounds = Readonly<{
  seed: number;
  runs: number;
  steps: number;
  milliseconds: number;
  often?: readonly string[];
  /** Lets all work come to its end after each sequence. */
  toTheEnd?: boolean;
}>;

export type Outcome = Readonly<{ failed: boolean; sequences: number; error: string; report: string }>;

/**
 * Random operations of people, agents, workers and the clock in two organizations; after each step every invariant is
 * asked for, and in the end, where that is wanted, whether all work can come to its end (`drain`). The same seed makes
 * the same operations; what two at once do to each other is the database's to decide.
 */
export async function checkEngine(sql: Sql, bounds: Bounds): Promise<Outcome> {
  const { seed, runs, steps, milliseconds, often = [], toTheEnd = false } = bounds;
  const property = fc.asyncProperty(fc.array(stepOf(often), { minLength: steps, maxLength: steps }), async (all) => {
    const world = await createWorld(sql);
    for (const moves of all) await takeStep(world, moves);
    if (toTheEnd) await drain(world);
    const broken = await brokenInvariants(sql);
    if (Object.keys(broken).length > 0) throw new Violation(`broken at the end: ${JSON.stringify(broken)}`);
    for (const { organizationId } of world.tenants) {
      await transition(sql.api, 'organization_delete', { organizationId });
    }
  });
  const details = await fc.check(property, {
    seed,
    numRuns: runs,
    // A sequence cut short by shrinking would start over in a world of its own, for minutes: the seed says it all.
    endOnFailure: true,
    interruptAfterTimeLimit: milliseconds,
  });
  return {
    failed: details.failed,
    sequences: details.numRuns,
    error: String(details.errorInstance),
    report: fc.defaultReportMessage(details) ?? '',
  };
}
