// Approved pushes, from a client of git to the provider's branch, with job processes in between.
import path from 'node:path';
import t, { type Test } from 'tap';
import type { Action } from '../../../../api/actions/schema.ts';
import { readKeySet, readReceipt, receiptKeys, verifyReceipt } from '../../../../engine/receipts/index.ts';
import {
  approvedPush,
  cloneOf,
  commitFile,
  createCoder,
  leftovers,
  moveMain,
  type Pushed,
  resolveGit,
  seedRepository,
  staged,
  startGit,
} from '../../../api/git/support.ts';
import { KEYS } from '../../../engine/integrations/support.ts';
import { addJob, spawnJobs } from '../../../jobs/support.ts';
import { passTime } from '../../../support/action_fixtures.ts';
import { expectSuccess, ownerPath, rawRequest, runNext, workerOf } from '../../../support/api_fixtures.ts';
import { openFolder } from '../../../support/folders.ts';
import { git, gitDone } from '../../../support/git_origin.ts';
import { brokenInvariants } from '../../../support/invariants.ts';
import { until } from '../../../support/wait.ts';

const world = await startGit(t, {
  config: { receiptKeys: receiptKeys.parse(Buffer.alloc(32, 1).toString('base64')) },
});
const { app, origin, sql } = world;

/** A process on the machine whose disk this folder is; it is gone when the test ends. */
function startProcess(t: Test, folder: string) {
  return spawnJobs(t, app.database.url, {
    DATA_DIR: folder,
    STORAGE_URL: app.config.storageUrl,
    ENCRYPTION_KEYS: KEYS,
    ALLOW_PRIVATE_ADDRESSES: '1',
    PROVIDER_ORIGINS: JSON.stringify({ 'https://github.com': origin.origin }),
  });
}

const gitFolder = (folder: string) => path.join(folder, 'git');

const isPush = ({ url, method }: Readonly<{ url: string; method: string }>) =>
  method === 'POST' && url.endsWith('/git-receive-pack');
/** How often a push of the repository was sent. */
const sent = (name: string) => origin.calls.filter((call) => isPush(call) && call.url.includes(`/${name}.git/`)).length;

const actionsOf = async ({ coder }: Pick<Pushed, 'coder'>) =>
  expectSuccess(await app.owner.get<Action[]>(ownerPath(coder.org, '/actions')));

async function read({ coder }: Pick<Pushed, 'coder'>, id: string): Promise<Action> {
  return expectSuccess(await app.owner.get<Action>(ownerPath(coder.org, `/actions/${id}`)));
}

/** Waits until it is over. */
async function ended(pushed: Pick<Pushed, 'coder'>, id: string): Promise<Action> {
  return until('the push is over', async () => {
    const action = await read(pushed, id);
    return ['succeeded', 'failed', 'unknown', 'cancelled'].includes(action.status) && action;
  });
}

async function receiptOf({ coder }: Pick<Pushed, 'coder'>, id: string) {
  const json = async (url: string) => JSON.parse(String((await rawRequest(app.url, { path: url })).body));
  const receipt = readReceipt(await json(ownerPath(coder.org, `/actions/${id}/receipt`)));
  const keys = readKeySet(await json('/.well-known/business-runner-keys.json'));
  if (!receipt || !keys) throw new Error('there is no receipt');
  return { receipt, verdict: verifyReceipt(receipt, keys) };
}

t.afterEach(() => {
  origin.faults.reply = undefined;
});

t.test('a push waits, is approved and carried out once, though two runs of its task push it', async (t) => {
  const folder = await openFolder(t);
  await startProcess(t, folder);
  const bare = await seedRepository(t, origin, 'acme/whole');
  const coder = await createCoder(world, { repositories: ['whole'] });
  const clone = await cloneOf(t, { ...coder, url: () => coder.url('acme/whole') });
  const before = await gitDone(clone, 'rev-parse', 'HEAD');
  const made = await commitFile(clone, 'a.txt', 'a');
  t.equal((await git(clone, 'push', 'origin', 'HEAD:main')).code, 1);
  t.equal(await gitDone(clone, 'rev-parse', 'origin/main'), before, 'the branch of the client stays');
  const [action] = await actionsOf({ coder });
  if (!action) throw new Error('there is no action');
  t.equal(action.status, 'awaiting_approval');

  expectSuccess(await workerOf(app, coder.run).fail({ retryable: true }));
  t.match((await git(clone, 'push', 'origin', 'HEAD:main')).stderr, /Authentication failed/, 'its run is over');
  const run = await runNext(app, coder.org);
  t.same([run.taskId, run.attempt], [coder.run.taskId, 2]);
  const { capability } = await resolveGit(world, coder.org, coder.integrationId, run);
  const url = coder.url('acme/whole').replace(coder.capability, capability);
  const again = await cloneOf(t, { ...coder, url: () => url });
  await gitDone(again, 'fetch', '--quiet', clone, 'HEAD');
  const pushed = await git(again, 'push', 'origin', 'FETCH_HEAD:main');
  t.match(pushed.stderr, `(awaiting approval, as action ${action.id})`);
  t.equal((await actionsOf({ coder })).length, 1);
  t.equal(await gitDone(bare, 'rev-parse', 'main'), before);

  expectSuccess(await app.owner.post(ownerPath(coder.org, `/actions/${action.id}/approve`)));
  const done = await ended({ coder }, action.id);
  const result = { repository: 'acme/whole', refs: [{ ref: 'refs/heads/main', oid: made }] };
  t.match(done, { status: 'succeeded', execution: { attempts: 1, error: null, result } });
  t.equal(await gitDone(bare, 'rev-parse', 'main'), made);
  t.equal(await gitDone(again, 'rev-parse', 'origin/main'), before, 'until it fetches');
  t.match((await git(again, 'push', 'origin', 'FETCH_HEAD:main')).stderr, /Everything up-to-date/);
  t.equal((await actionsOf({ coder })).length, 1);
  t.equal(sent('whole'), 1);
  const { receipt, verdict } = await receiptOf({ coder }, action.id);
  t.equal(verdict, 'valid');
  t.match(receipt, {
    action: { id: action.id, kind: 'git_push' },
    decision: { outcome: 'approved' },
    result: { status: 'succeeded', execution: { result } },
  });
  t.same(await leftovers(gitFolder(folder)), []);

  // And the same, of a branch that moves meanwhile.
  const moved = await cloneOf(t, { ...coder, url: () => url });
  await commitFile(moved, 'b.txt', 'b');
  await git(moved, 'push', 'origin', 'HEAD:main');
  const theirs = await moveMain(t, bare);
  const late = (await actionsOf({ coder })).find(({ id }) => id !== action.id);
  if (!late) throw new Error('there is no second action');
  expectSuccess(await app.owner.post(ownerPath(coder.org, `/actions/${late.id}/approve`)));
  const error = { code: 'ref_moved', message: /refs\/heads\/main was moved at the provider after the push/ };
  t.match(await ended({ coder }, late.id), { status: 'failed', execution: { attempts: 1, result: null, error } });
  t.equal(await gitDone(bare, 'rev-parse', 'main'), theirs);
  const failure = await receiptOf({ coder }, late.id);
  t.equal(failure.verdict, 'valid');
  t.match(failure.receipt, {
    decision: { outcome: 'approved' },
    result: { execution: { error: { code: 'ref_moved' } } },
  });
  t.same(await leftovers(gitFolder(folder)), []);
  t.same(await brokenInvariants(sql), {});
});

t.test('what a process leaves that is killed while it pushes is removed by the next one', async (t) => {
  const folder = await openFolder(t);
  const killed = await startProcess(t, folder);
  const reached = Promise.withResolvers<void>();
  // Nobody ever responds.
  origin.faults.reply = (call) => {
    if (isPush(call)) reached.resolve();
    return isPush(call);
  };
  const pushed = await approvedPush(t, world, 'killed');
  await reached.promise;
  await killed.kill('SIGKILL');
  t.equal((await staged(gitFolder(folder))).length, 1);
  origin.faults.reply = undefined;
  await passTime(sql, pushed.id);
  await startProcess(t, folder);
  t.match(await ended(pushed, pushed.id), { status: 'failed', execution: { error: { code: 'not_applied' } } });
  t.same(await leftovers(gitFolder(folder)), []);
  t.equal(await gitDone(pushed.bare, 'rev-parse', 'main'), pushed.before);
  t.equal(sent('killed'), 1);
  t.same(await brokenInvariants(sql), {});
});

t.test('of two processes that end the same push the one that holds its lease says what became of it', async (t) => {
  const frozen = await startProcess(t, await openFolder(t));
  origin.faults.reply = (call) => {
    if (isPush(call)) frozen.child.kill('SIGSTOP');
    return false;
  };
  const pushed = await approvedPush(t, world, 'overlap');
  await until('it is pushed', async () => (await gitDone(pushed.bare, 'rev-parse', 'main')) === pushed.made);
  t.equal((await read(pushed, pushed.id)).status, 'executing');
  await passTime(sql, pushed.id);
  await startProcess(t, await openFolder(t));
  // The job that there is belongs to the process that stands still.
  await addJob(sql.owner, 'actions__execute', {});
  const done = await ended(pushed, pushed.id);
  t.match(done, { status: 'succeeded', execution: { attempts: 1, error: null } });
  frozen.child.kill('SIGCONT');
  await until('it has tried to end it', () => frozen.output().includes('looked up by another process'));
  t.same(await read(pushed, pushed.id), done);
  t.equal(sent('overlap'), 1);
  t.same(await brokenInvariants(sql), {});
});
