import t from 'tap';
import { GitFailedError } from '../../../engine/git/program.ts';

const isOurs = (stderr: string, code: number | null = 128) =>
  new GitFailedError('fetch', code, { stdout: '', stderr }).isOurs;

t.test('what failed here is told from what a server or a pack is at fault for', async (t) => {
  for (const stderr of [
    'fatal: write error: No space left on device\nfatal: fetch-pack: invalid index-pack output\n',
    'error: unable to write file x: Disk quota exceeded\n',
    'fatal: Out of memory, malloc failed (tried to allocate 4096 bytes)\n',
    'error: index-pack died of signal 9\nfatal: fetch-pack: invalid index-pack output\n',
  ]) {
    t.ok(isOurs(stderr), stderr);
  }
  t.ok(isOurs('', null), 'ended by a signal');
  for (const stderr of [
    'remote: fatal: write error: No space left on device\nfatal: the remote end hung up unexpectedly\n',
    'fatal: remote error: out of memory\n',
    'error: remote unpack failed: Disk quota exceeded\n',
    'remote: error: pack-objects died of signal 9\nfatal: early EOF\n',
    'fatal: pack is corrupted (SHA1 mismatch)\n',
    '',
  ]) {
    t.notOk(isOurs(stderr), stderr);
  }
});
