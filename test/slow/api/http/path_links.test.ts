import { mkdir, readdir, rename, rm, symlink } from 'node:fs/promises';
import path from 'node:path';
import t from 'tap';
import { publishBuiltinCatalog } from '../../../../engine/catalog/index.ts';
import { startTestApp } from '../../../support/app.ts';
import { openFolder } from '../../../support/folders.ts';
import { type Operation, readOpenApi } from '../../../support/openapi.ts';
import { sendPath } from '../../../support/path_requests.ts';
import { folderOf, layOut, treeOf } from '../../../support/storage_escapes.ts';
import { makeWorld } from '../../../support/worlds.ts';

const app = await startTestApp(t, { config: { logLevel: 'fatal' } });
await publishBuiltinCatalog(app.services.db);
const { operations } = await readOpenApi(app.owner);
await layOut(app);

/** The folders that an organization may have. */
const FOLDERS = ['runs', 'tasks', 'chats', 'context', 'invocations'];

/** Ways to put links that lead out of the storage in place of what it has of an organization. */
const links: Readonly<Record<string, (inside: string, outside: string) => Promise<void>>> = {
  async 'its folder'(inside, outside) {
    await rename(inside, outside);
    await symlink(outside, inside);
  },
  async 'the folders in it'(inside, outside) {
    await mkdir(outside);
    for (const name of FOLDERS) {
      const [from, to] = [path.join(inside, name), path.join(outside, name)];
      await rename(from, to).catch(() => mkdir(to));
      await symlink(to, from);
    }
  },
  async 'its files'(inside, outside) {
    await mkdir(outside);
    for (const entry of await readdir(inside, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      const [from, to] = [path.join(entry.parentPath, entry.name), path.join(outside, entry.name)];
      await rename(from, to);
      await symlink(to, from);
    }
  },
};

const reads = ({ responses }: Operation) => '206' in responses;
const writes = ({ body }: Operation) => body?.mediaType === 'application/octet-stream';

for (const [what, put] of Object.entries(links)) {
  t.test(`where ${what} became links, no bytes are read or written behind them`, async (t) => {
    const outer = await openFolder(t);
    for (const operation of operations) {
      const { operationId } = operation;
      if (!reads(operation) && !writes(operation)) continue;
      const [gone, world] = [await makeWorld(app, operation), await makeWorld(app, operation)];
      await rm(folderOf(app, gone['organizationId'] ?? ''), { recursive: true, force: true });
      const inside = folderOf(app, world['organizationId'] ?? '');
      await mkdir(inside, { recursive: true });
      const outside = path.join(outer, operationId);
      await put(inside, outside);
      const before = await treeOf(outside);
      const { status } = await sendPath(app, operation, world);
      if (reads(operation)) {
        t.equal(status, (await sendPath(app, operation, gone)).status, `${operationId}: as if nothing were there`);
      } else t.equal(status, what === 'its files' ? 201 : 503, `${operationId} makes a new file, or none`);
      t.same(await treeOf(outside), before, operationId);
    }
  });
}
