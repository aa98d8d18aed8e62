import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { chmod, writeFile } from 'node:fs/promises';
import path from 'node:path';
import t, { type Test } from 'tap';
import type { Action } from '../../../../api/actions/schema.ts';
import { type Executing, executeAction } from '../../../../engine/gateway/index.ts';
import { openGit } from '../../../../engine/git/index.ts';
import {
  approvedPush,
  type Coder,
  leftovers,
  moveMain,
  type Pushed,
  startGit,
  TOKEN,
} from '../../../api/git/support.ts';
import { passTime } from '../../../support/action_fixtures.ts';
import { expectSuccess, ownerPath } from '../../../support/api_fixtures.ts';
import { openAs } from '../../../support/database.ts';
import { openFolder } from '../../../support/folders.ts';
import { git, gitDone } from '../../../support/git_origin.ts';
import { brokenInvariants } from '../../../support/invariants.ts';
import { transition } from '../../../support/transitions.ts';
import { until } from '../../../support/wait.ts';

const world = await startGit(t);
const { app, origin, sql } = world;

// As the jobs of another machine have it: a disk of its own, and the rights of the jobs.
const jobs = openAs(app.database.url, { role: 'runner_jobs', size: 4, applicationName: 'test pushes' });
t.teardown(() => jobs.end());
const config = { git: { ...app.config.git, folder: path.join(await openFolder(t), 'git') } };
const executing: Executing = {
  storage: app.services.storage,
  git: openGit({ config, db: jobs, storage: app.services.storage, log: app.services.log }),
  integrations: { ...app.services.integrations, db: jobs, refreshes: new Map() },
  approvalDays: 7,
};

const read = async ({ org }: Coder, id: string) =>
  expectSuccess(await app.owner.get<Action>(ownerPath(org, `/actions/${id}`)));

async function run({ org }: Coder, actionId: string): Promise<void> {
  await executeAction(executing, { organizationId: org.organizationId, actionId });
}

const isPush = (url: string, method: string) => method === 'POST' && url.endsWith('/git-receive-pack');

const branchOf = async (bare: string, branch: string) =>
  (await git(bare, 'rev-parse', '--verify', branch)).stdout.trim();

t.afterEach(() => {
  origin.faults.reply = undefined;
});

/** Whatever becomes of its pushes, neither the API nor the job keeps anything of them on its disk. */
function scenario(name: string, body: (test: Test) => Promise<void>): void {
  void t.test(name, async (test) => {
    await body(test);
    for (const { folder } of [app.config.git, config.git]) test.same(await leftovers(folder), []);
  });
}

scenario('an approved push is at the provider, all of its branches, and once', async (t) => {
  const { coder, bare, folder, id, before, made } = await approvedPush(t, world, 'done', 'also');
  t.equal(await branchOf(bare, 'main'), before);
  let folders = 0;
  origin.faults.reply = ({ url, method }) => {
    if (isPush(url, method)) folders = readdirSync(path.join(config.git.folder, 'staging')).length;
    return false;
  };
  await run(coder, id);
  t.equal(folders, 1, 'it is sent from a folder of its own');
  const refs = [
    { ref: 'refs/heads/also', oid: made },
    { ref: 'refs/heads/main', oid: made },
  ];
  const done = await read(coder, id);
  t.match(done, { status: 'succeeded', execution: { attempts: 1, error: null, result: { repository: 'acme/done' } } });
  const { refs: told } = (done.execution?.result ?? { refs: [] }) as { refs: typeof refs };
  t.same(
    [...told].sort((a, b) => (a.ref < b.ref ? -1 : 1)),
    refs,
  );
  t.same([await branchOf(bare, 'main'), await branchOf(bare, 'also')], [made, made]);
  const sent = () => origin.calls.filter(({ url, method }) => url.includes('done.git') && isPush(url, method)).length;
  const once = sent();
  await run(coder, id);
  t.equal(sent(), once, 'a job that runs twice sends nothing');
  await gitDone(folder, 'fetch', '--quiet');
  t.equal(await gitDone(folder, 'rev-parse', 'origin/main'), made);
  t.match((await git(folder, 'push', 'origin', 'HEAD:main')).stderr, /Everything up-to-date/);
  t.same(await brokenInvariants(sql), []);
});

scenario('a branch that moved meanwhile keeps all of the push from being applied', async (t) => {
  const { coder, bare, id } = await approvedPush(t, world, 'moved', 'also');
  const theirs = await moveMain(t, bare);
  await run(coder, id);
  t.match(await read(coder, id), {
    status: 'failed',
    execution: { error: { code: 'ref_moved', message: /refs\/heads\/main was moved/ } },
  });
  t.same([await branchOf(bare, 'main'), await branchOf(bare, 'also')], [theirs, '']);
});

scenario('what the provider refuses has failed, with its reason', async (t) => {
  const { coder, bare, id, before } = await approvedPush(t, world, 'hooked', 'also');
  const hook = path.join(bare, 'hooks', 'update');
  await gitDone(bare, 'config', 'core.hooksPath', path.join(bare, 'hooks'));
  await gitDone(bare, 'init', '--quiet', '--bare', '.');
  await writeFile(hook, '#!/bin/sh\n[ "$1" != refs/heads/main ]\n');
  await chmod(hook, 0o755);
  await run(coder, id);
  t.match(await read(coder, id), {
    status: 'failed',
    execution: { error: { code: 'ref_refused', message: 'The provider refuses refs/heads/main: hook declined' } },
  });
  t.same([await branchOf(bare, 'main'), await branchOf(bare, 'also')], [before, ''], 'nor is the other branch made');
});

scenario('a push that cannot be made ready is put off', async (t) => {
  const { coder, bare, id, before } = await approvedPush(t, world, 'later');
  origin.faults.reply = (_call, _req, res) => {
    res.writeHead(500).end();
    return true;
  };
  await run(coder, id);
  t.match(await read(coder, id), { status: 'approved', execution: null });
  t.equal(await branchOf(bare, 'main'), before);
});

scenario('a push without an answer is looked up, never sent again', async (t) => {
  const lost = await approvedPush(t, world, 'lost');
  origin.faults.reply = ({ url, method }, req) => {
    if (isPush(url, method)) req.socket.destroy();
    return isPush(url, method);
  };
  await run(lost.coder, lost.id);
  t.match(await read(lost.coder, lost.id), { status: 'executing' });
  await passTime(sql, lost.id);
  await run(lost.coder, lost.id);
  t.match(await read(lost.coder, lost.id), { status: 'failed', execution: { error: { code: 'not_applied' } } });
  t.equal(await branchOf(lost.bare, 'main'), lost.before);

  for (const movesOn of [false, true]) {
    const kept = await approvedPush(t, world, movesOn ? 'kept-and-moved' : 'kept');
    origin.faults.reply = ({ url, method }, req, res) => {
      // It is applied, and then nobody hears of it.
      if (isPush(url, method)) res.write = () => !req.socket.destroy();
      return false;
    };
    await run(kept.coder, kept.id);
    t.match(await read(kept.coder, kept.id), { status: 'executing' });
    origin.faults.reply = undefined;
    // Git at the provider goes on after its client has gone.
    await until('the push is applied', async () => (await branchOf(kept.bare, 'main')) === kept.made);
    if (movesOn) await moveMain(t, kept.bare);
    await passTime(sql, kept.id);
    await run(kept.coder, kept.id);
    t.match(await read(kept.coder, kept.id), { status: 'succeeded' });
  }

  const other = await approvedPush(t, world, 'elsewhere');
  origin.faults.reply = ({ url, method }, req) => {
    if (isPush(url, method)) req.socket.destroy();
    return isPush(url, method);
  };
  await run(other.coder, other.id);
  origin.faults.reply = undefined;
  await moveMain(t, other.bare);
  await passTime(sql, other.id);
  await run(other.coder, other.id);
  t.match(await read(other.coder, other.id), { status: 'executing' }, 'the branch is neither here nor there');
});

/** The same push again, and what its client tells the person. */
const pushAgain = async ({ folder }: Pushed) => (await git(folder, 'push', 'origin', 'HEAD:main')).stderr;

const actionsOf = async ({ org }: Coder) => expectSuccess(await app.owner.get<Action[]>(ownerPath(org, '/actions')));

const moveBack = ({ bare, before }: Pushed) => gitDone(bare, 'update-ref', 'refs/heads/main', before);

scenario('a client that pushes again hears how far its push is', async (t) => {
  const pushed = await approvedPush(t, world, 'again');
  const { coder, bare, id } = pushed;
  const approved = await pushAgain(pushed);
  t.match(approved, `main (approved, and about to be pushed, as action ${id})`);
  t.match(approved, /remote: The push is staged: approved, .*you need not push again\./);

  origin.faults.reply = ({ url, method }, req) => {
    if (isPush(url, method)) req.socket.destroy();
    return isPush(url, method);
  };
  await run(coder, id);
  const executing = await pushAgain(pushed);
  t.match(executing, `main (being pushed, as action ${id})`);
  t.match(executing, /remote: The push is staged: being pushed, .*you need not push again\./);

  origin.faults.reply = undefined;
  await moveMain(t, bare);
  await passTime(sql, id);
  await run(coder, id);
  await sql.owner.query('update app.actions set look_up_until = now() where id = $1', [id]);
  await passTime(sql, id);
  await run(coder, id);
  t.match(await read(coder, id), { status: 'unknown' });
  await moveBack(pushed);
  const unknown = await pushAgain(pushed);
  t.match(unknown, `main (pushed before, and a person has to find out what became of it: action ${id})`);
  t.match(
    unknown,
    new RegExp(`remote: The push is not staged again: .*Wait until a person has decided about action ${id}`),
  );
  t.equal((await actionsOf(coder)).length, 1);
});

scenario('a push that was taken back at the provider is proposed anew, once, and needs an approval', async (t) => {
  const pushed = await approvedPush(t, world, 'taken-back');
  const { coder, bare, id, before, made } = pushed;
  await run(coder, id);
  t.equal(await branchOf(bare, 'main'), made);
  const proposed = [id];
  for (const decision of ['approve', 'reject', 'approve']) {
    await moveBack(pushed);
    const said = await Promise.all([pushAgain(pushed), pushAgain(pushed), pushAgain(pushed)]);
    const [action, ...others] = (await actionsOf(coder)).filter((one) => !proposed.includes(one.id));
    if (!action) throw new Error('there is no other action');
    t.same(others, []);
    t.match(action, {
      status: 'awaiting_approval',
      requiresApproval: true,
      arguments: { refs: [{ oldOid: before, newOid: made }] },
    });
    const anew = /remote: Action \S+ pushed this before, and it was taken back since\. The push is staged again: /;
    t.ok(said.some((text) => anew.test(text)));
    for (const text of [...said, await pushAgain(pushed)]) {
      t.match(text, `main (awaiting approval, as action ${action.id})`);
      t.match(text, /The push is staged(?: again)?: awaiting approval, as action /);
    }
    t.equal(await branchOf(bare, 'main'), before);
    const body = decision === 'reject' ? { reason: 'no' } : {};
    expectSuccess(await app.owner.post(ownerPath(coder.org, `/actions/${action.id}/${decision}`), body));
    await run(coder, action.id);
    t.equal(await branchOf(bare, 'main'), decision === 'reject' ? before : made);
    proposed.push(action.id);
  }
  t.same(await brokenInvariants(sql), []);

  // What reaches the provider while it is pushed again was not taken back.
  await moveBack(pushed);
  let asked = 0;
  origin.faults.reply = ({ url }) => {
    if (!url.includes('info/refs?service=git-upload-pack')) return false;
    asked += 1;
    if (asked === 3) execFileSync('git', ['update-ref', 'refs/heads/main', made], { cwd: bare });
    return false;
  };
  const meanwhile = await pushAgain(pushed);
  t.match(meanwhile, `main (pushed before, by action ${id}: fetch first)`);
  t.match(meanwhile, /remote: The push is not staged again: .*Fetch, and push what is missing\./);
  t.equal((await actionsOf(coder)).length, proposed.length);
});

scenario('a pack that is no longer what was recorded is not pushed', async (t) => {
  const { coder, bare, id, before } = await approvedPush(t, world, 'changed');
  const { rows } = await app.database.owner.query('select storage_key from app.action_files where action_id = $1', [
    id,
  ]);
  await app.services.storage.put(
    rows[0].storage_key,
    (async function* () {
      yield Buffer.from('PACK');
    })(),
  );
  await run(coder, id);
  t.match(await read(coder, id), { status: 'cancelled', reason: { code: 'file_changed' } });
  t.equal(await branchOf(bare, 'main'), before);
  t.notOk(JSON.stringify(app.logged).includes(TOKEN));
  t.notOk(JSON.stringify(app.logged).includes(Buffer.from(`x-access-token:${TOKEN}`).toString('base64')));
});

/** The settings of the integration, by the owner's hand. */
const setRepositories = ({ org, integrationId }: Coder, ...repositories: readonly string[]) =>
  transition(sql.api, 'integration_settings_put', {
    organizationId: org.organizationId,
    integrationRef: integrationId,
    settings: { kind: 'github', owner: 'acme', repositories },
    connectionRevision: 1,
    disconnect: false,
    forgetTools: false,
  });

/** Runs it, and a second time: what can never be sent ends at once, with the reason, and reaches nothing. */
async function ends(t: Test, { coder, bare, id, before }: Pushed, code: string, as = executing): Promise<void> {
  const isPush = ({ url }: { url: string }) => url.includes('git-receive-pack');
  const sent = origin.calls.filter(isPush).length;
  const place = { organizationId: coder.org.organizationId, actionId: id };
  await executeAction(as, place);
  t.match(await read(coder, id), { status: 'cancelled', reason: { code } }, code);
  await executeAction(as, place);
  t.equal(origin.calls.filter(isPush).length, sent, code);
  t.equal(await branchOf(bare, 'main'), before, code);
  t.same(await brokenInvariants(sql), []);
}

scenario('a push to a repository that the settings no longer name is cancelled', async (t) => {
  const removed = await approvedPush(t, world, 'unnamed');
  await setRepositories(removed.coder, 'another');
  await ends(t, removed, 'settings_changed');
});

scenario('a push to a repository that is larger than mirrors may be is cancelled', async (t) => {
  const folder = path.join(await openFolder(t), 'git');
  const small = { git: { ...app.config.git, folder, mirrorBytes: 100 } };
  const { storage, log } = app.services;
  const as = { ...executing, git: openGit({ config: small, db: jobs, storage, log }) };
  await ends(t, await approvedPush(t, world, 'outgrown'), 'repository_too_large', as);
  t.same(await leftovers(folder), []);
});

scenario('a push whose pack no longer fits is cancelled', async (t) => {
  const pushed = await approvedPush(t, world, 'rewritten');
  const bytes = Buffer.from('this is no pack, and has the digest that is recorded');
  const { rows } = await app.database.owner.query('select storage_key from app.action_files where action_id = $1', [
    pushed.id,
  ]);
  await app.services.storage.put(
    rows[0].storage_key,
    (async function* () {
      yield bytes;
    })(),
  );
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  await app.database.owner.query('update app.action_files set size_bytes = $2, sha256 = $3 where action_id = $1', [
    pushed.id,
    bytes.length,
    sha256,
  ]);
  await ends(t, pushed, 'pack_unusable');
});

scenario('a push whose stored arguments are of another form is cancelled', async (t) => {
  const pushed = await approvedPush(t, world, 'other-form');
  await app.database.owner.query(
    `update app.actions set arguments = '{"repository": "acme/other-form"}' where id = $1`,
    [pushed.id],
  );
  await ends(t, pushed, 'arguments_unusable');
});
