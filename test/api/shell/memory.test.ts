import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { SERVICE_TOKEN } from '../../support/app.ts';
import { createPlace, createTask } from '../../support/fixtures.ts';
import { openFolder } from '../../support/folders.ts';
import { createClient } from '../../support/http.ts';
import { openSql } from '../../support/transitions.ts';

const root = path.resolve(import.meta.dirname, '../../..');
const AT_ONCE = 4;
const ROUNDS = 60;
/** A few hundred in truth, 1,000 for a refusal; 3,000 to 15,000 where a request is kept alive. */
const KEPT_AT_MOST = 2_000;
const REFUSED = 'a refusal of the database';

const sql = await openSql(t);

/** The API as a process of its own, which tells what its old generation holds. */
async function start() {
  const reporter = pathToFileURL(path.join(root, 'test', 'support', 'old_generation.ts')).href;
  const child = spawn(process.execPath, ['--expose-gc', '--import', reporter, path.join(root, 'api', 'main.ts')], {
    env: {
      PATH: process.env['PATH'],
      PORT: '0',
      DATA_DIR: await openFolder(t),
      DATABASE_URL: sql.url,
      OWNER_AUTH: 'open',
      AGENT_SERVICE_TOKENS: SERVICE_TOKEN,
      LOG_LEVEL: 'warn',
    },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  t.teardown(async () => {
    child.kill('SIGKILL');
    await once(child, 'exit');
  });
  const [{ url }] = await once(child, 'message');
  return {
    url: url as string,
    async oldBytes(): Promise<number> {
      child.send({ type: 'old generation' });
      const [{ bytes }] = await once(child, 'message');
      return bytes;
    },
  };
}

t.test('a request leaves nothing in the old generation', async (t) => {
  const place = await createPlace(sql);
  for (let n = 0; n < 5; n += 1) await createTask(sql, place);
  const api = await start();
  const client = createClient(api.url);
  const organization = `/organizations/${place.organizationId}`;
  const lease = { organizationId: place.organizationId, leaseToken: `1.${'a'.repeat(43)}` };
  const service = { headers: { authorization: `Bearer ${SERVICE_TOKEN}` } };
  const heartbeat = `/internal/runs/${place.organizationId}/heartbeat`;
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
    const before = await api.oldBytes();
    await repeat(ROUNDS);
    const kept = ((await api.oldBytes()) - before) / (ROUNDS * AT_ONCE);
    t.equal((await send()).status, what === REFUSED ? 409 : 200, what);
    t.ok(kept < KEPT_AT_MOST, `${what} keeps ${Math.round(kept)} bytes`);
  }
});
