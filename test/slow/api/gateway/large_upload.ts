// An upload as large as they are, over whichever storage: who sends it and who stores it hold a few parts of it in memory.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { request } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { Test } from 'tap';
import { MiB, mebibytes } from '../../../engine/storage/contract.ts';
import { expectSuccess, storedKeys } from '../../../support/api_fixtures.ts';
import { type Declared, fileCalls, type Upload } from '../../../support/gateway_files.ts';
import type { openGateway } from '../../../support/gateway_world.ts';

async function declared(count: number): Promise<Declared> {
  const hash = createHash('sha256');
  for await (const piece of mebibytes(count)) hash.update(piece);
  return {
    name: 'large.bin',
    contentType: 'application/octet-stream',
    sizeBytes: count * MiB,
    sha256: hash.digest('hex'),
  };
}

async function sendLarge({ uploadUrl, method, headers }: Upload, count: number): Promise<number | undefined> {
  const sending = request(uploadUrl, { method, headers });
  const responded = once(sending, 'response');
  await pipeline(mebibytes(count), sending);
  const [response] = await responded;
  response.resume();
  await once(response, 'end');
  return response.statusCode;
}

/** Sends, completes and reads so many MiB, and looks at the memory meanwhile. */
export async function largeUpload(t: Test, gateway: Awaited<ReturnType<typeof openGateway>>, count: number) {
  const by = await gateway.caller();
  // No worker renews it here.
  await gateway.sql.owner.query(
    `update app.run_requests set lease_expires_at = now() + interval '1 hour' where run_id = $1`,
    [by.run.runId],
  );
  const once = async (size: number) => {
    const file = fileCalls(by);
    const wanted = await declared(size);
    t.equal(await sendLarge(expectSuccess(await file.begin(wanted)), size), 200);
    t.match(expectSuccess(await file.complete(wanted)), wanted);
    const hash = createHash('sha256');
    const { body } = await file.get();
    for await (const chunk of body ?? []) hash.update(chunk);
    t.equal(hash.digest('hex'), wanted.sha256);
  };
  await once(16);
  const before = process.memoryUsage().rss;
  let highest = before;
  const look = setInterval(() => {
    highest = Math.max(highest, process.memoryUsage().rss);
  }, 20);
  try {
    await once(count);
  } finally {
    clearInterval(look);
  }
  const grown = Math.round((highest - before) / MiB);
  t.comment(`${grown} MiB more for ${count} MiB`);
  // The whole of it would be 1,024. What is free to be collected varies by how busy the machine is.
  t.ok(grown < 300, `${grown} MiB more for ${count} MiB`);
  t.equal((await storedKeys(gateway.app, by.org)).length, 2);
}
