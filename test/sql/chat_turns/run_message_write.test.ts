import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  completeTurn,
  createChatOrganization,
  messageRow,
  startedTurn,
  text,
  write,
} from '../../support/chat_fixtures.ts';
import { createTask, endLease } from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSession, openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const differs = { status: 409, code: 'run_lease_expired', reason: 'differs' };

scenario('only the holder of the turn’s lease writes, while it lasts', async (test) => {
  const org = await createChatOrganization(sql);
  const [turn, other] = [await startedTurn(sql, org), await startedTurn(sql, org)];
  const lost = { status: 409, code: 'run_lease_expired', reason: 'lease_lost' };
  const [fence, secret = ''] = turn.leaseToken.split('.');
  const wrong = [other.leaseToken, `${Number(fence) + 1}.${secret}`, `${fence}.${'0'.repeat(secret.length)}`];
  for (const leaseToken of wrong) {
    test.match(await refusal(write(sql.api, { ...turn, leaseToken }, 1, { append: 'x' })), lost, leaseToken);
  }
  test.match(await write(sql.api, turn, 1, { append: 'x' }), { revision: 2 });
  await endLease(sql, turn);
  test.match(await refusal(write(sql.api, turn, 2, { append: 'y' })), lost, 'it is over, whoever noticed');
  test.match((await messageRow(sql, org, turn.messageId)).parts, [{ text: 'x' }]);
});

scenario('a revision sent again is the same one; one with a stale base is refused', async (test) => {
  const org = await createChatOrganization(sql);
  const turn = await startedTurn(sql, org);
  const parts = [{ id: 'a', ...text('x') }];
  test.match(await write(sql.api, turn, 1, { parts }), { revision: 2 });
  test.match(await write(sql.api, turn, 1, { parts }), { revision: 2 });
  test.match(await refusal(write(sql.api, turn, 1, { parts: [{ id: 'a', ...text('y') }] })), differs);
  test.match(await refusal(write(sql.api, turn, 3, { parts })), differs);
  test.match(await write(sql.api, turn, 2, { append: 'y' }), { revision: 3 });
  test.match(await write(sql.api, turn, 2, { append: 'y' }), { revision: 3 }, 'an append is not made twice');
  test.match(await write(sql.api, turn, 3, { append: 'y' }), { revision: 4 }, 'and is made again on the new base');
  test.match((await messageRow(sql, org, turn.messageId)).parts, [{ id: 'a', text: 'xyy' }]);
  const doubled = await refusal(write(sql.api, turn, 4, { parts: [...parts, ...parts] }));
  test.match(doubled, { status: 400, reason: 'duplicate_id' });
  const large = await refusal(write(sql.api, turn, 4, { append: 'x'.repeat(1_100_000) }));
  test.match(large, { status: 400, code: 'validation_failed', reason: 'too_large' });
});

scenario(
  'parts without an id keep that of the part in their place; an append after another part begins a text',
  async (test) => {
    const org = await createChatOrganization(sql);
    const turn = await startedTurn(sql, org);
    await write(sql.api, turn, 1, { parts: [text('a'), { kind: 'question', question: '?', options: [] }] });
    const before = (await messageRow(sql, org, turn.messageId)).parts;
    await write(sql.api, turn, 2, { parts: [text('b'), { kind: 'question', question: '??', options: [] }] });
    const after = (await messageRow(sql, org, turn.messageId)).parts;
    test.same(
      after.map(({ id }) => id),
      before.map(({ id }) => id),
    );
    await write(sql.api, turn, 3, { append: 'c' });
    test.match((await messageRow(sql, org, turn.messageId)).parts, [
      { text: 'b' },
      { kind: 'question' },
      { text: 'c' },
    ]);
  },
);

scenario('two writes with one base: one is kept, the other refused', async (test) => {
  const org = await createChatOrganization(sql);
  const turn = await startedTurn(sql, org);
  const session = await openSession(test, sql);
  const rival = await openSession(test, sql);
  await session.begin();
  await write(session, turn, 1, { append: 'first' });
  const second = refusal(write(rival, turn, 1, { append: 'second' }));
  await rival.waits();
  await session.commit();
  test.match(await second, differs);
  test.match((await messageRow(sql, org, turn.messageId)).parts, [{ text: 'first' }]);
});

scenario('parts name tasks of the organization alone; a refusal leaves the lease', async (test) => {
  const org = await createChatOrganization(sql);
  const foreign = await createChatOrganization(sql);
  const turn = await startedTurn(sql, org);
  const own = await createTask(sql, org);
  const naming = (taskId: string) => [text('Made'), { kind: 'task', taskId }];
  const unknown = { status: 400, code: 'validation_failed', reason: 'unknown_task' };
  for (const id of [randomUUID(), (await createTask(sql, foreign)).id]) {
    test.match(await refusal(write(sql.api, turn, 1, { parts: naming(id) })), unknown);
    test.match(await refusal(completeTurn(sql.api, turn, { parts: naming(id) })), unknown);
  }
  test.match(await messageRow(sql, org, turn.messageId), { status: 'pending', revision: 1 });
  test.match(await write(sql.api, turn, 1, { parts: naming(own.id) }), { revision: 2 });
  test.match(await completeTurn(sql.api, turn, { parts: naming(own.id) }), { status: 'succeeded' });
});
