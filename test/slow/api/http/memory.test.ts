import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { get, type IncomingMessage, request } from 'node:http';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { SERVICE_TOKEN } from '../../../support/app.ts';
import { createChat, createChatOrganization } from '../../../support/chat_fixtures.ts';
import { bareEnvironment } from '../../../support/environment.ts';
import { createTask, createTestOrganization } from '../../../support/fixtures.ts';
import { openFolder } from '../../../support/folders.ts';
import { createClient } from '../../../support/http.ts';
import { openSql } from '../../../support/transitions.ts';

const root = path.resolve(import.meta.dirname, '../../../..');
const AT_ONCE = 4;
const ROUNDS = 60;
/** A few hundred in truth, 1,000 for a refusal; 3,000 to 15,000 where a request is kept alive. */
const KEPT_AT_MOST = 2_000;
const REFUSED = 'a refusal of the database';

const sql = await openSql(t);

/** The API as a process of its own, which tells how much memory it uses. */
async function start() {
  const reporter = pathToFileURL(path.join(root, 'test', 'support', 'memory_reporter.ts')).href;
  const child = spawn(process.execPath, ['--expose-gc', '--import', reporter, path.join(root, 'api', 'main.ts')], {
    env: bareEnvironment({
      PORT: '0',
      DATA_DIR: await openFolder(t),
      DATABASE_URL: sql.url,
      OWNER_AUTH: 'open',
      AGENT_SERVICE_TOKENS: SERVICE_TOKEN,
      LOG_LEVEL: 'warn',
    }),
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  t.teardown(async () => {
    child.kill('SIGKILL');
    await once(child, 'exit');
  });
  const [{ url }] = await once(child, 'message');
  return {
    url: url as string,
    async bytes(type: 'old generation' | 'resident'): Promise<number> {
      child.send({ type });
      const [{ bytes }] = await once(child, 'message');
      return bytes;
    },
  };
}

t.test('a request leaves nothing in the old generation', async (t) => {
  const org = await createTestOrganization(sql);
  for (let n = 0; n < 5; n += 1) await createTask(sql, org);
  const api = await start();
  const client = createClient(api.url);
  const organization = `/organizations/${org.organizationId}`;
  const lease = { organizationId: org.organizationId, leaseToken: `1.${'a'.repeat(43)}` };
  const service = { headers: { authorization: `Bearer ${SERVICE_TOKEN}` } };
  const heartbeat = `/internal/runs/${org.organizationId}/heartbeat`;
  const requests: Readonly<Record<string, () => Promise<{ status: number }>>> = {
    'a read': () => client.get(organization),
    'an empty list': () => client.get(`${organization}/context/sources`),
    'a list': () => client.get(`${organization}/tasks`),
    'a change': () => client.patch(organization, { name: 'Acme' }),
    [REFUSED]: () => client.post(heartbeat, lease, service),
  };
  for (const [what, send] of Object.entries(requests)) {
    const repeat = async (rounds: number) => {
      for (let n = 0; n < rounds; n += 1) await Promise.all(Array.from({ length: AT_ONCE }, send));
    };
    // What is made once, and code that is compiled.
    await repeat(ROUNDS);
    const before = await api.bytes('old generation');
    await repeat(ROUNDS);
    const kept = ((await api.bytes('old generation')) - before) / (ROUNDS * AT_ONCE);
    t.equal((await send()).status, what === REFUSED ? 409 : 200, what);
    t.ok(kept < KEPT_AT_MOST, `${what} keeps ${Math.round(kept)} bytes`);
  }
});

const MiB = 1024 * 1024;
const piece = Buffer.alloc(65_536, 'x');

t.test('an upload and a download of 50 MB keep the memory flat', async (t) => {
  const api = await start();
  const org = await createChatOrganization(sql);
  const chat = await createChat(sql, org);
  const address = `${api.url}/organizations/${org.organizationId}/chats/${chat.id}/attachments/`;

  async function upload(id: string, size: number): Promise<number | undefined> {
    const query = 'fileName=notes.txt&mediaType=text%2Fplain';
    const headers = { 'content-type': 'application/octet-stream' };
    const outgoing = request(`${address}${id}?${query}`, { method: 'PUT', headers });
    const received = once(outgoing, 'response');
    await pipeline(Readable.from(Array.from({ length: size / piece.length }, () => piece)), outgoing);
    const [response] = (await received) as [IncomingMessage];
    response.resume();
    await once(response, 'end');
    return response.statusCode;
  }
  async function download(id: string): Promise<number> {
    const [response] = (await once(get(`${address}${id}/content`), 'response')) as [IncomingMessage];
    let size = 0;
    for await (const chunk of response) size += chunk.length;
    return size;
  }
  async function both(size: number): Promise<void> {
    const id = randomUUID();
    t.equal(await upload(id, size), 201);
    t.equal(await download(id), size);
  }

  // Code is loaded, and the young generation has its size; by small files, so that what is held of a large one shows.
  for (let n = 0; n < 30; n += 1) await both(MiB);
  const before = await api.bytes('resident');
  let highest = before;
  let over = false;
  const watching = (async () => {
    while (!over) highest = Math.max(highest, await api.bytes('resident'));
  })();
  await both(50 * MiB).finally(() => {
    over = true;
  });
  await watching;
  const grown = (highest - before) / MiB;
  t.ok(grown < 30, `${grown.toFixed(1)} MiB more`);
  t.comment(`${Math.round(before / MiB)} MiB before`);
});
