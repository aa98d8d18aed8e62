import t from 'tap';
import {
  type Chat,
  type ChatClaim,
  cancelMessage,
  completeTurn,
  createChat,
  createChatOrganization,
  deleteChat,
  type Message,
  pullTurns,
  putAttachment,
  send,
  startTurn,
  type Turn,
  text,
  updateChat,
  write,
} from '../../../support/chat_fixtures.ts';
import {
  createSecondProfile,
  endLease,
  expire,
  failRun,
  heartbeat,
  releaseClaim,
  type TestOrganization,
  updateOrganization,
  updateProfile,
} from '../../../support/fixtures.ts';
import { brokenInvariants } from '../../../support/invariants.ts';
import { openSql, Refusal, transition } from '../../../support/transitions.ts';

const sql = await openSql(t);

/** Refusals are results, and these three are tried again by their callers; everything else is a bug. */
const TRANSIENT = ['40001', '40P01', '55P03'];

type World = {
  org: TestOrganization;
  second: TestOrganization;
  chats: Chat[];
  messages: Message[];
  claims: ChatClaim[];
  turns: (Turn & { revision: number })[];
};
type Random = () => number;
type Step = (world: World, random: Random) => Promise<unknown>;

/** Numbers in [0, 1), the same ones for the same seed. */
function generator(seed: number): Random {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

function pick<T>(random: Random, from: readonly T[]): T | undefined {
  return from[Math.floor(random() * from.length)];
}

function take<T>(random: Random, from: T[]): T | undefined {
  return from.splice(Math.floor(random() * from.length), 1)[0];
}

function overdue(org: TestOrganization, runRequestId: string): Promise<unknown> {
  return transition(sql.jobs, 'chat_turn_end_overdue', {
    organizationId: org.organizationId,
    runRequestId,
    startSeconds: 0,
  });
}

const steps: readonly (readonly [weight: number, step: Step])[] = [
  [
    14,
    async ({ org, chats, messages }, random) => {
      const chat = pick(random, chats);
      if (chat) messages.push((await send(sql.api, org, chat.id)).assistantMessage);
    },
  ],
  [
    12,
    async ({ org, claims }, random) => {
      claims.push(...(await pullTurns(sql.api, org, 1 + Math.floor(random() * 3))));
    },
  ],
  [
    12,
    async ({ claims, turns }, random) => {
      const claim = take(random, claims);
      if (claim) turns.push({ ...(await startTurn(sql.api, claim)), revision: 1 });
    },
  ],
  [
    12,
    async ({ turns }, random) => {
      const turn = pick(random, turns);
      if (!turn) return;
      const { revision } = await write(sql.api, turn, turn.revision, { append: 'x' });
      turn.revision = Math.max(turn.revision, revision as number);
    },
  ],
  [
    8,
    async ({ turns }, random) => {
      const turn = take(random, turns);
      if (turn) await completeTurn(sql.api, turn, { parts: [text('Done')], summary: 's' });
    },
  ],
  [
    3,
    async ({ turns }, random) => {
      const turn = take(random, turns);
      if (turn) await failRun(sql.api, turn);
    },
  ],
  [
    3,
    async ({ turns }, random) => {
      const turn = pick(random, turns);
      if (turn) await heartbeat(sql.api, turn);
    },
  ],
  [
    6,
    async ({ org, messages }, random) => {
      const message = pick(random, messages.slice(-8));
      if (message) await cancelMessage(sql.api, org, message);
    },
  ],
  [
    5,
    async ({ org, chats }, random) => {
      const chat = pick(random, chats);
      if (chat) await deleteChat(sql.api, org, chat.id);
    },
  ],
  [
    6,
    async ({ org, chats }, random) => {
      const chat = pick(random, chats);
      if (chat) await updateChat(sql.api, org, chat.id, { status: random() < 0.8 ? 'open' : 'archived' });
    },
  ],
  [
    2,
    async ({ org, chats }, random) => {
      const chat = pick(random, chats);
      if (chat) await putAttachment(sql.api, org, chat.id);
    },
  ],
  [
    5,
    async ({ claims, turns }, random) => {
      const held = pick(random, [...claims, ...turns]);
      if (!held) return;
      await endLease(sql, held);
      await expire(sql.jobs, held);
    },
  ],
  [
    2,
    async ({ org, claims }, random) => {
      const claim = pick(random, claims);
      if (claim) await overdue(org, claim.runRequestId);
    },
  ],
  [
    2,
    async ({ claims }, random) => {
      const claim = take(random, claims);
      if (claim) await releaseClaim(sql.api, claim);
    },
  ],
  [
    3,
    async ({ org, second }, random) => {
      const profile = random() < 0.5 ? org : second;
      await updateProfile(sql.api, profile, { status: random() < 0.4 ? 'disabled' : 'enabled' });
    },
  ],
  [
    1,
    async ({ org }, random) => {
      await updateOrganization(sql.api, org, { status: random() < 0.3 ? 'suspended' : 'active' });
    },
  ],
];

async function attempt(work: Promise<unknown>, bugs: string[]): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (error instanceof Refusal || TRANSIENT.includes(String((error as { code?: string }).code))) return;
    bugs.push(String(error));
  }
}

/** `actors` at once, each with so many steps. */
async function storm(seed: number, actors: number, count: number): Promise<{ world: World; bugs: string[] }> {
  const org = await createChatOrganization(sql);
  const second = await createSecondProfile(sql, org, { kind: 'chat' });
  const chats = await Promise.all(Array.from({ length: 6 }, () => createChat(sql, org)));
  const world: World = { org, second, chats, messages: [], claims: [], turns: [] };
  const deck = steps.flatMap(([weight, step]) => Array.from({ length: weight }, () => step));
  const bugs: string[] = [];
  await Promise.all(
    Array.from({ length: actors }, async (_, actor) => {
      const random = generator(seed * 1_000 + actor);
      for (let n = 0; n < count; n += 1) {
        const step = pick(random, deck);
        if (step) await attempt(step(world, random), bugs);
      }
    }),
  );
  return { world, bugs };
}

/** Lets every lease end, and judges what nobody has started. */
async function calm({ org, second }: World): Promise<void> {
  await updateOrganization(sql.api, org, { status: 'active' });
  for (const each of [org, second]) await updateProfile(sql.api, each, { status: 'enabled' });
  const open = `select id, state from app.run_requests
    where organization_id = $1 and state in ('published', 'leased', 'started')`;
  const { rows } = await sql.owner.query(open, [org.organizationId]);
  for (const { id } of rows) {
    await endLease(sql, { organizationId: org.organizationId, runRequestId: id });
    await expire(sql.jobs, { organizationId: org.organizationId, runRequestId: id });
    await overdue(org, id);
  }
}

for (const seed of [1, 2]) {
  t.test(`whatever is done at once, every invariant holds and no chat is stuck (${seed})`, async (test) => {
    const { world, bugs } = await storm(seed, 8, 50);
    test.same(bugs, [], 'every call returned or was refused');
    test.same(await brokenInvariants(sql), {}, 'in the middle of it');
    await calm(world);
    test.same(await brokenInvariants(sql), {}, 'at the end');
    const { rows } = await sql.owner.query(
      `select status, count(*)::int as n from app.messages where organization_id = $1 and role = 'assistant' group by 1`,
      [world.org.organizationId],
    );
    test.ok(rows.length > 0, 'messages got replies');
    test.notOk(
      rows.some(({ status }) => ['pending', 'cancelling'].includes(status)),
      'and all have ended',
    );
    const held = await sql.owner.query('select from app.dispatch where organization_id = $1 and held > 0', [
      world.org.organizationId,
    ]);
    test.equal(held.rowCount, 0, 'no slot is taken');
    for (const chat of world.chats) {
      await updateChat(sql.api, world.org, chat.id, { status: 'open' });
      await send(sql.api, world.org, chat.id);
    }
  });
}
