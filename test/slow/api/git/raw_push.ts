// Pushes as no client of git makes them.
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { FLUSH, pktLine } from '../../../../engine/git/pkt_line.ts';
import type { Coder } from '../../../api/git/support.ts';
import { gitDone } from '../../../support/git_origin.ts';

export const NONE = '0'.repeat(40);
/** A pack without an object. */
export const EMPTY = Buffer.from('5041434b0000000200000000029d08823bd8a8eab510ad6ac75c823cfd3ed31e', 'hex');

/** A push by hand, of what no client would send to this server. */
export async function rawPush(
  coder: Coder,
  updates: readonly string[],
  options: { capabilities?: string; tail?: Buffer } = {},
) {
  const { capabilities = 'report-status side-band-64k', tail = Buffer.alloc(0) } = options;
  const lines = updates.map((update, index) => pktLine(index === 0 ? `${update}\0${capabilities}\n` : `${update}\n`));
  const { origin: at, pathname } = new URL(coder.url());
  const response = await fetch(`${at}${pathname}/git-receive-pack`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${coder.capability}`,
      'content-type': 'application/x-git-receive-pack-request',
    },
    body: Buffer.concat([...lines, FLUSH, tail]),
  });
  return { status: response.status, text: await response.text() };
}

/** A pack of what the last commit has and its parent does not. */
export async function lastPack(folder: string): Promise<Buffer> {
  await gitDone(folder, '-c', 'pack.window=0', 'bundle', 'create', '--quiet', 'last', 'HEAD', '^HEAD^');
  const bundle = await readFile(path.join(folder, 'last'));
  return bundle.subarray(bundle.indexOf('\n\n') + 2);
}
