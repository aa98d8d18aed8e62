import { chmod, mkdir, rename, rm, symlink } from 'node:fs/promises';
import path from 'node:path';
import t from 'tap';
import { isRoot, serviceAccount } from '../../../../engine/postgres/account.ts';
import { binariesFor, bundledBinaries } from '../../../../engine/postgres/binaries.ts';
import { clusterElsewhere, orphanedFolders, ownerElsewhere } from '../../../../engine/postgres/elsewhere.ts';
import { startPostgres, throwAway } from '../../../../engine/postgres/embedded.ts';
import { findPlace } from '../../../../engine/postgres/place.ts';
import { openFolder } from '../../../support/folders.ts';
import { query } from '../../../support/postgres.ts';

t.setTimeout(120_000);
const skip = isRoot() ? false : 'only root runs Postgres as another account';

t.test('root with a data folder and packages that the Postgres account cannot enter', { skip }, async (test) => {
  const open = await openFolder(test);
  const closed = path.join(open, 'closed');
  await mkdir(closed, { mode: 0o700 });
  const bundled = await bundledBinaries();
  await symlink(path.dirname(bundled.bin), path.join(closed, 'native'));
  const options = {
    base: path.join(open, 'elsewhere'),
    binaries: { ...bundled, bin: path.join(closed, 'native', 'bin') },
  };
  const dataDir = path.join(closed, '.data');
  const place = await findPlace(dataDir, options);
  test.match(place.cluster, `${options.base}/`);
  test.match(place.notes, [
    new RegExp(`^the database lies in ${options.base}/.*cannot enter ${closed}; npm run reset removes it$`),
    new RegExp(`^the Postgres binaries are copied to ${options.base}/`),
  ]);
  test.equal(ownerElsewhere(place.cluster), dataDir, 'either names the other');
  test.equal(clusterElsewhere(dataDir), place.cluster);
  test.same(orphanedFolders(options.base), []);
  await rename(dataDir, `${dataDir}.away`);
  const orphan = { folder: path.dirname(place.cluster), dataDir };
  test.same(orphanedFolders(options.base), [orphan], 'its data folder is gone');
  await rename(`${dataDir}.away`, dataDir);
  // As an earlier version left it.
  await rm(path.join(path.dirname(place.cluster), 'data-folder'));
  test.same(orphanedFolders(options.base), [{ ...orphan, dataDir: undefined }]);
  const start = async () => {
    const found = await findPlace(dataDir, options);
    test.equal(found.cluster, place.cluster, 'the place stays');
    return startPostgres({ ...found, password: 'p', settings: throwAway });
  };
  const first = await start();
  test.same(orphanedFolders(options.base), [], 'a start writes down whose it is');
  await query(first.url, 'create table kept as select 1 as n');
  await first.stop();
  await chmod(closed, 0o755); // enterable now: the database is where it was all the same
  const second = await start();
  test.same(await query(second.url, 'select n from kept'), [{ n: 1 }]);
  await second.stop();
  await rm(path.dirname(place.cluster), { recursive: true });
  await test.rejects(findPlace(dataDir, options), { message: /which is gone; bring it back, or remove .*location/ });
});

t.test('root with a data folder that can be entered', { skip }, async (test) => {
  const dataDir = path.join(await openFolder(test), '.data');
  // The clone itself may lie where that account cannot enter.
  const binaries = await binariesFor(serviceAccount(), await bundledBinaries());
  const place = await findPlace(dataDir, { binaries });
  test.equal(place.cluster, path.join(dataDir, 'postgres'));
  test.same(place.notes, []);
});
