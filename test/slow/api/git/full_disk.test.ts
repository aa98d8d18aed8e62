import { randomBytes } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import t from 'tap';
import type { Action } from '../../../../api/actions/schema.ts';
import { type Executing, executeAction } from '../../../../engine/gateway/index.ts';
import { openGit } from '../../../../engine/git/index.ts';
import {
  type Coder,
  cloneOf,
  commitFile,
  createCoder,
  leftovers,
  seedRepository,
  startGit,
} from '../../../api/git/support.ts';
import { passTime } from '../../../support/action_fixtures.ts';
import { expectSuccess, ownerPath } from '../../../support/api_fixtures.ts';
import { openAs } from '../../../support/database.ts';
import { openFolder } from '../../../support/folders.ts';
import { git, gitDone } from '../../../support/git_origin.ts';
import { mountSmallDisk, noSmallDisks } from '../../../support/small_disk.ts';

const skip = await noSmallDisks();
const world = await startGit(t);
const { app, origin, sql } = world;

const jobs = openAs(app.database.url, { role: 'runner_jobs', size: 4, applicationName: 'test pushes' });
t.teardown(() => jobs.end());
const executing: Executing = {
  storage: app.services.storage,
  git: openGit({ config: app.config, db: jobs, storage: app.services.storage, log: app.services.log }),
  integrations: { ...app.services.integrations, db: jobs, refreshes: new Map() },
  approvalDays: 7,
};

const MiB = 1024 * 1024;
const DISK_MiB = 8;
/** What a file of a repository has; git cannot make it smaller. */
const NOISE = 2 * MiB;

/** Leaves so much room on the disk of git, besides what is there already. @returns what gives the rest back */
async function leave(folder: string, bytes: number): Promise<() => Promise<void>> {
  const taken = path.join(folder, 'taken');
  await writeFile(taken, Buffer.alloc(DISK_MiB * MiB - bytes));
  return () => rm(taken);
}

const actionsOf = async ({ org }: Coder) => expectSuccess(await app.owner.get<Action[]>(ownerPath(org, '/actions')));

async function readinessOf({ org, integrationId }: Coder): Promise<string> {
  const reply = await app.owner.get<{ readiness: string }>(ownerPath(org, `/integrations/${integrationId}`));
  return expectSuccess(reply).readiness;
}

const forget = () => rm(path.join(app.config.git.folder, 'mirrors'), { recursive: true, force: true });

const OURS = /Something went wrong on our side/;

for (const [what, large] of [
  ['the mirror', 'the repository'],
  ['its pack', 'the push'],
] as const) {
  t.test(`a push waits while the disk has no room for ${what}, and nothing else is blamed`, { skip }, async (t) => {
    const { folder: disk } = mountSmallDisk(t, app.config.git.folder, DISK_MiB, '700');
    const name = large === 'the push' ? 'pushed' : 'mirrored';
    const bare = await seedRepository(t, origin, `acme/${name}`);
    if (large === 'the repository') {
      const work = path.join(await openFolder(t), 'work');
      await gitDone(path.dirname(work), 'clone', '--quiet', bare, work);
      await commitFile(work, 'noise', randomBytes(NOISE));
      await gitDone(work, 'push', '--quiet', 'origin', 'HEAD:main');
    }
    const coder = await createCoder(world, { repositories: [name] });
    const folder = await cloneOf(t, { ...coder, url: () => coder.url(`acme/${name}`) });
    const made = await commitFile(folder, 'mine', large === 'the push' ? randomBytes(NOISE) : 'mine');
    const readiness = await readinessOf(coder);
    // Of what is received or fetched once; git has no room for it a second time, or not even once.
    const room = large === 'the push' ? NOISE * 1.5 : NOISE * 0.5;
    const push = async () => (await git(folder, 'push', 'origin', 'HEAD:main')).stderr;

    let giveBack = await leave(disk, room);
    t.match(await push(), OURS);
    t.same(await actionsOf(coder), []);
    t.equal(await readinessOf(coder), readiness, 'the connection is as it was');
    await giveBack();
    t.match(await push(), /awaiting approval/);
    const [action] = await actionsOf(coder);
    if (!action) throw new Error('there is no action');
    expectSuccess(await app.owner.post(ownerPath(coder.org, `/actions/${action.id}/approve`)));

    await forget();
    giveBack = await leave(disk, room);
    const place = { organizationId: coder.org.organizationId, actionId: action.id };
    await executeAction(executing, place);
    t.match(await actionsOf(coder), [{ status: 'approved', execution: null }], 'it is put off');
    t.equal(await readinessOf(coder), readiness);
    await giveBack();
    await passTime(sql, action.id);
    await executeAction(executing, place);
    t.match(await actionsOf(coder), [{ status: 'succeeded' }]);
    t.equal(await gitDone(bare, 'rev-parse', 'main'), made);
    t.same(await leftovers(disk), []);
  });
}
