import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type * as Tap from 'tap';
import { GOOGLE, toolsAt } from './google_workspace_support.ts';
import { json } from './support.ts';

type Put = Readonly<{ range: string; bytes: Buffer }>;

/** Drive's resumable uploads: `keeps` says how much of a chunk is kept. */
export async function openUploads(
  test: Tap.Test,
  keeps: (put: Put, number: number) => number = ({ bytes }) => bytes.length,
) {
  const begun: { headers: Record<string, unknown>; url: URL; metadata: Record<string, unknown> }[] = [];
  const puts: Put[] = [];
  const kept: Buffer[] = [];
  const has = () => kept.reduce((sum, { length }) => sum + length, 0);
  const server = createServer(async (req, res) => {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of req) chunks.push(chunk);
    } catch {
      return;
    }
    const bytes = Buffer.concat(chunks);
    const url = new URL(req.url ?? '', GOOGLE);
    if (req.method === 'POST') {
      begun.push({ headers: req.headers, url, metadata: JSON.parse(bytes.toString()) });
      res.writeHead(200, { location: `${GOOGLE}/upload/drive/v3/files?uploadType=resumable&upload_id=u1` }).end();
      return;
    }
    const put = { range: String(req.headers['content-range']), bytes };
    puts.push(put);
    try {
      kept.push(bytes.subarray(0, keeps(put, puts.length)));
    } catch {
      res.destroy();
      return;
    }
    const total = Number(put.range.split('/')[1]);
    if (has() === total) json(res, 200, { id: 'f9', name: 'x', size: String(total), kind: 'drive#file' });
    else res.writeHead(308, has() === 0 ? {} : { range: `bytes=0-${has() - 1}` }).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  test.teardown(() => new Promise((closed) => server.close(closed)));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { begun, puts, bytes: () => Buffer.concat(kept), ...toolsAt(test, origin) };
}
