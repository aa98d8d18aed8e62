import { chmod, mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { TearDown } from './database.ts';

/** A folder of this test's own that other accounts may pass through, as Postgres has to; removed at the end. */
export async function openFolder(t: TearDown): Promise<string> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'runner-test-'));
  await chmod(folder, 0o711);
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  return folder;
}
