import { createHash, randomBytes } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { createWriteStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import t from 'tap';
import type { Action } from '../../../../api/actions/schema.ts';
import { cloneOf, createCoder, seedRepository, startGit } from '../../../api/git/support.ts';
import { expectSuccess, ownerPath } from '../../../support/api_fixtures.ts';
import { openFolder } from '../../../support/folders.ts';
import { git, gitDone } from '../../../support/git_origin.ts';

const MEGABYTE = 1024 * 1024;
const world = await startGit(t);
const bare = await seedRepository(t, world.origin);

/** Bytes that nothing makes smaller. */
async function writeNoise(file: string, megabytes: number): Promise<void> {
  const noise = Readable.from(
    (function* () {
      for (let number = 0; number < megabytes; number += 1) yield randomBytes(MEGABYTE);
    })(),
  );
  await pipeline(noise, createWriteStream(file));
}

t.test('100 MB are pushed after a probe, in pieces, and cloned again, in flat memory', async (t) => {
  const coder = await createCoder(world);
  const folder = await cloneOf(t, coder);
  await writeNoise(path.join(folder, 'noise'), 100);
  await gitDone(folder, 'add', '--all');
  await gitDone(folder, 'commit', '--quiet', '--message', 'Add noise');
  let peak = 0;
  const before = process.memoryUsage.rss();
  const timer = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage.rss() - before);
  }, 50);
  t.teardown(() => clearInterval(timer));
  const sent: IncomingHttpHeaders[] = [];
  const received = (message: unknown) => {
    const { request } = message as { request: IncomingMessage };
    const { method, url, headers } = request;
    if (method === 'POST' && url?.endsWith('/shop/git-receive-pack')) sent.push(headers);
  };
  subscribe('http.server.request.start', received);
  t.teardown(() => unsubscribe('http.server.request.start', received));
  const pushed = await git(folder, 'push', 'origin', 'HEAD:refs/heads/large');
  const forms = sent.map((headers) => [headers['content-length'], headers['transfer-encoding']]);
  t.same(
    forms,
    [
      ['4', undefined],
      [undefined, 'chunked'],
    ],
    'a probe of one empty line, then a body whose length nobody tells',
  );
  t.match(pushed.stderr, /awaiting approval/);
  const [action] = expectSuccess(await world.app.owner.get<Action[]>(ownerPath(coder.org, '/actions')));
  const [file] = action?.files ?? [];
  t.ok(file && file.sizeBytes > 100 * MEGABYTE, 'more than the probe of a large push asks for');
  const { rows } = await world.app.database.owner.query(
    'select storage_key from app.action_files where organization_id = $1',
    [coder.org.organizationId],
  );
  const hash = createHash('sha256');
  for await (const chunk of await world.app.services.storage.get(rows[0].storage_key)) hash.update(chunk);
  t.equal(hash.digest('hex'), file?.sha256);

  await gitDone(folder, 'push', '--quiet', bare, 'HEAD:main');
  const clone = path.join(await openFolder(t), 'clone');
  await gitDone(path.dirname(clone), 'clone', '--quiet', coder.url(), clone);
  t.equal((await stat(path.join(clone, 'noise'))).size, 100 * MEGABYTE);
  t.ok(peak < 60 * MEGABYTE, `${Math.round(peak / MEGABYTE)} MB more than before`);
});
