import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import t from 'tap';
import { builtinCatalog, catalogRevision, publishBuiltinCatalog } from '../../../engine/catalog/index.ts';
import { openPool } from '../../../engine/db/pool.ts';
import { createTestDatabase } from '../../support/database.ts';
import { bareEnvironment } from '../../support/environment.ts';

t.setTimeout(120_000);
const root = path.resolve(import.meta.dirname, '../../..');

t.test('a catalog is published and shown by the command', async (t) => {
  const database = await createTestDatabase(t);
  const folder = await mkdtemp(path.join(tmpdir(), 'catalog-test-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const run = async (argv: string[], env: NodeJS.ProcessEnv = { DATABASE_URL: database.url }) => {
    const child = spawn(process.execPath, ['scripts/catalog.ts', '--no-env-file', ...argv], {
      cwd: root,
      env: bareEnvironment(env),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const [out, err, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
    return { status, out, err };
  };
  const file = path.join(folder, 'catalog.json');
  const catalog = { ...builtinCatalog(), version: 7 };
  const revision = catalogRevision(catalog);

  t.match(await run(['show']), { status: 0, out: 'no catalog is published\n' });
  await writeFile(file, JSON.stringify(catalog));
  t.same(await run(['publish', file]), {
    status: 0,
    out: `published ${revision} (5 profiles); it is current now\n`,
    err: '',
  });
  t.match(await run(['publish', file]), { status: 0, out: `${revision} is published already\n` });
  const entries = await database.owner.query(
    `select actor, subject_id, result from app.audit_entries where action = 'catalog.publish' order by created_at`,
  );
  t.match(entries.rows, [
    { actor: / \(command line\)$/, subject_id: revision, result: { published: true } },
    { subject_id: revision, result: { published: false } },
  ]);
  const shown = await run(['show']);
  t.match(shown.out, `revision ${revision}, version 7, published `);
  t.match(shown.out, /growth {9}department {2}Finds out where customers come from/);
  t.same(JSON.parse((await run(['show', '--json'])).out), catalog);

  await writeFile(file, JSON.stringify({ ...catalog, profiles: [] }));
  const refused = await run(['publish', file]);
  t.equal(refused.status, 1);
  t.match(refused.err, /is no catalog:[\s\S]*profiles/);
  t.match(await run(['publish', path.join(folder, 'none')]), { status: 1, err: /ENOENT/ });
  t.match(await run(['publish']), { status: 64, out: /npm run catalog/ });
  t.match(await run(['show', '--nonsense']), { status: 64 });
  t.match(await run(['show'], { DATA_DIR: folder }), { status: 1, err: /no Business Runner runs on .*npm start/ });

  await publishBuiltinCatalog(database.api);
  const { rows } = await database.owner.query('select revision from app.agent_catalogs');
  t.same(rows, [{ revision }], 'the shipped catalog takes no place of one that an operator published');
});

t.test('processes that start at once publish the shipped catalog once', async (t) => {
  const database = await createTestDatabase(t);
  const others = await Promise.all(
    Array.from({ length: 4 }, () => openPool(database.url, { role: 'runner_api', size: 1 })),
  );
  t.teardown(() => Promise.all(others.map((pool) => pool.end())));
  await Promise.all(others.map((pool) => publishBuiltinCatalog({ ...pool, wake: () => {} })));
  const { rows } = await database.owner.query('select revision, catalog from app.agent_catalogs');
  t.same(rows, [{ revision: catalogRevision(builtinCatalog()), catalog: builtinCatalog() }]);
});
