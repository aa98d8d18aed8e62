import { chmod, mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import pg from 'pg';
import t, { type Test } from 'tap';
import { endWaits } from '../../../../api/services.ts';
import { migrate } from '../../../../engine/db/migrate.ts';
import { startPostgres, throwAway } from '../../../../engine/postgres/embedded.ts';
import {
  ask,
  createChat,
  createChatOrganization,
  type Followed,
  followChat,
  revise,
} from '../../../api/chats/support.ts';
import { expectSuccess } from '../../../support/api_fixtures.ts';
import { startTestApp } from '../../../support/app.ts';
import { openAs, type TestDatabase } from '../../../support/database.ts';
import { until } from '../../../support/wait.ts';

const shows = (stream: Followed, text: string) =>
  until(`"${text}"`, () => {
    const part = stream.events.at(-1)?.data.message?.parts[0];
    return part?.kind === 'text' && part.text === text;
  });

t.test('a stream on one process sees what is written through the other', async (t) => {
  const one = await startTestApp(t);
  const two = await startTestApp(t, { database: one.database });
  const chat = await createChat(one, await createChatOrganization(one));
  const streams = [await followChat(one, chat), await followChat(two, chat)];
  t.teardown(() => {
    for (const stream of streams) stream.stop();
  });
  const reply = await ask(two, chat);
  for (const stream of streams) await until('the reply', () => stream.events.length > 0);
  await revise(one, reply, { text: 'through one' });
  for (const stream of streams) await shows(stream, 'through one');
  await revise(two, reply, { text: 'through two' });
  for (const stream of streams) await shows(stream, 'through two');
  t.ok(streams.every((stream) => stream.events.length === 3));
});

t.test('a notification that is lost costs time alone', async (t) => {
  const app = await startTestApp(t);
  const chat = await createChat(app, await createChatOrganization(app));
  const reply = await ask(app, chat);
  const stream = await followChat(app, chat);
  t.teardown(() => stream.stop());
  await until('the snapshot', () => stream.events.length === 1);
  await revise(app, reply, { text: 'unheard', silent: true });
  await shows(stream, 'unheard');
  t.equal(stream.events.length, 2);
});

t.test('a lost LISTEN connection drops no client, and brings it up to date', async (t) => {
  const app = await startTestApp(t);
  const chat = await createChat(app, await createChatOrganization(app));
  const reply = await ask(app, chat);
  const stream = await followChat(app, chat);
  t.teardown(() => stream.stop());
  await until('the snapshot', () => stream.events.length === 1);
  for (const round of [1, 2, 3]) {
    await app.database.owner.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and application_name = 'business-runner api'`,
    );
    await revise(app, reply, { text: `round ${round}`, silent: true });
    await shows(stream, `round ${round}`);
    await until('it listens again', () => app.services.listener.connected());
    await revise(app, reply, { text: `after ${round}` });
    await shows(stream, `after ${round}`);
  }
  t.notOk(stream.ended());
  const seen = stream.events.map((event) => event.data.message?.revision ?? 0);
  t.same(
    seen,
    [...new Set(seen)].sort((a, b) => a - b),
  );
});

/** A Postgres of the test's own, which can be started anew in its place. */
async function ownPostgres(t: Test) {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'runner-restart-'));
  await chmod(folder, 0o711);
  const options = { cluster: path.join(folder, 'postgres'), password: 'test', settings: throwAway };
  let running = await startPostgres(options);
  await migrate(running.url);
  const { url } = running;
  const owner = new pg.Pool({ connectionString: url, max: 2 });
  owner.on('error', () => {});
  const pools = [openAs(url, { role: 'runner_api', size: 1 }), openAs(url, { role: 'runner_jobs', size: 1 })] as const;
  t.teardown(async () => {
    await Promise.allSettled([owner.end(), ...pools.map((pool) => pool.end())]);
    await running.stop();
    await rm(folder, { recursive: true, force: true });
  });
  const database: TestDatabase = { url, name: 'postgres', owner, api: pools[0], jobs: pools[1] };
  return {
    database,
    stop: () => running.stop(),
    async start() {
      running = await startPostgres({ ...options, port: Number(new URL(url).port) });
    },
  };
}

t.test('a restarted Postgres drops no client, and brings it up to date', async (t) => {
  const postgres = await ownPostgres(t);
  const app = await startTestApp(t, { database: postgres.database });
  const chat = await createChat(app, await createChatOrganization(app));
  const reply = await ask(app, chat);
  const stream = await followChat(app, chat);
  t.teardown(() => stream.stop());
  await until('the snapshot', () => stream.events.length === 1);
  await postgres.stop();
  await until('it is noticed', () => !app.services.listener.connected());
  const refused = await followChat(app, chat);
  t.equal(refused.status, 503, 'a new stream is told to come again');
  t.ok(refused.headers['retry-after']);
  refused.stop();
  await postgres.start();
  await until('it responds', () => revise(app, reply, { text: 'back', silent: true }).catch(() => undefined));
  await shows(stream, 'back');
  await until('it listens again', () => app.services.listener.connected());
  await revise(app, reply, { text: 'again' });
  await shows(stream, 'again');
  t.notOk(stream.ended());
});

t.test('a process that stops ends its streams, and the client goes on elsewhere where it was', async (t) => {
  const one = await startTestApp(t);
  const two = await startTestApp(t, { database: one.database });
  const chat = await createChat(one, await createChatOrganization(one));
  const reply = await ask(one, chat);
  const stream = await followChat(one, chat);
  await until('the snapshot', () => stream.events.length === 1);
  await endWaits(one.services);
  await until('the end', () => stream.ended());
  t.equal(stream.response.complete, true, 'whole, and not cut');
  const late = await followChat(one, chat);
  t.equal(late.status, 503);
  late.stop();
  await revise(two, reply, { text: 'meanwhile' });
  const next = await followChat(two, chat, { lastEventId: stream.events.at(-1)?.id ?? '' });
  t.teardown(() => next.stop());
  await shows(next, 'meanwhile');
  t.equal(next.events.length, 1);
});

t.test('a deleted organization ends its streams', async (t) => {
  const app = await startTestApp(t);
  const org = await createChatOrganization(app);
  const chat = await createChat(app, org);
  const stream = await followChat(app, chat);
  expectSuccess(await app.owner.delete(`/organizations/${org.organizationId}`));
  await until('the end', () => stream.ended());
  t.same(stream.revisions(), ['chat.closed']);
});
