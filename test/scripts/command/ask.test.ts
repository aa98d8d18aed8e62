import { writeFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { createActing, grantGateway, propose } from '../../support/action_fixtures.ts';
import { sqlOf } from '../../support/api_fixtures.ts';
import { completeTurn, createChatOrganization, pullTurns, startTurn } from '../../support/chat_fixtures.ts';
import { openFolder } from '../../support/folders.ts';
import { startProxy } from '../../support/proxy.ts';
import { until } from '../../support/wait.ts';
import { begin, setUp, startWithCatalog } from './set_up.ts';

t.setTimeout(180_000);
const app = await startWithCatalog(t);
const sql = sqlOf(app);

t.test('a reply is printed while it is written, over a connection that breaks', async (test) => {
  const proxy = await startProxy(test, app.url);
  const { begin, call, worker } = await setUp(test, app, proxy.url);
  const folder = await openFolder(test);
  const gate = (name: string) => path.join(folder, name);
  const wait = (name: string) => `until [ -e '${gate(name)}' ]; do sleep 0.05; done`;
  worker(`printf 'One, '; ${wait('first')}; printf 'two, '; ${wait('second')}; printf 'three.'`);
  const asking = begin('ask', 'Count, please');
  await until('the first piece', () => asking.out() === 'One, ');
  writeFileSync(gate('first'), '');
  await until('the second piece', () => asking.out() === 'One, two, ');
  proxy.cut();
  writeFileSync(gate('second'), '');
  proxy.restore();
  const { status, out, err } = await asking.ended;
  test.equal(status, 0, err);
  test.equal(out, 'One, two, three.\n', 'nothing twice');
  const [, chat = ''] = /npx business-runner ask --chat ([0-9a-f]{8}) TEXT continues/.exec(err) ?? [];
  const json = await call('ask', 'Again', '--chat', chat, '--json');
  test.equal(json.err, '');
  test.match(JSON.parse(json.out), { status: 'complete', role: 'assistant' });
});

t.test('a reply that fails says why', async (test) => {
  const { call, worker } = await setUp(test, app);
  worker(`echo '{"kind":"failed","code":"tired","message":"Not today","retryable":false}' > $RESULT_FILE`);
  test.match(await call('ask', 'Hello'), { status: 2, err: /business-runner: the reply failed: Not today\n$/ });
});

t.test('a question in a reply is shown, and the next message answers it', async (test) => {
  const { call, worker } = await setUp(test, app);
  const parts =
    '{"parts":[{"kind":"question","question":"Which quarter?","options":["Q3","Q4"]},{"kind":"text","text":"Hm."}]}';
  const exec = `case "$(cat message.txt)" in Hello) echo '${parts}' > $RESULT_FILE;; *) cat message.txt;; esac`;
  worker(exec);
  const asked = await call('ask', 'Hello');
  test.equal(asked.out, 'Hm.\nWhich quarter?\n- Q3\n- Q4\n', asked.err);
  const [, chat = ''] = /--chat (\w+)/.exec(asked.err) ?? [];
  test.match(await call('ask', 'Q5', '--chat', chat), { status: 1, err: /option/ });
  test.match(await call('ask', 'Q4', '--chat', chat), { status: 0, out: /Q4/ });
});

t.test('what its turn proposed is shown below a reply, with how to read it', async (test) => {
  const org = await createChatOrganization(sql);
  const { integration } = await createActing(sql, undefined, org);
  const asking = begin(
    { BUSINESS_RUNNER_URL: app.url, BUSINESS_RUNNER_ORGANIZATION: org.organizationId },
    'ask',
    'Pay',
  );
  const claim = await until('it is asked', async () => (await pullTurns(sql.api, org)).at(0));
  const turn = await startTurn(sql.api, claim);
  const by = await grantGateway(sql, org, integration, turn);
  const { id } = await propose(sql, by, { summary: 'Refund 5 of a\u001b[2Jb' });
  await completeTurn(sql.api, turn);
  const { status, out, err } = await asking.ended;
  test.equal(status, 0, err);
  const more = `npx business-runner actions show ${id.slice(-8)}`;
  test.equal(out, `Done\naction: Refund 5 of a\\u001b[2Jb\n${more}\n`);
});

t.test('Ctrl-C and the end of the time leave the reply to its agent', async (test) => {
  const { begin } = await setUp(test, app);
  const asking = begin('ask', 'Hello');
  await until('it waits', () => asking.err().includes('nobody has begun to reply'));
  asking.interrupt();
  test.match(await asking.ended, {
    status: 130,
    err: /business-runner: no worker has begun to reply; a reply will stand in http:\S+\/messages\n$/,
  });
  test.match(await begin('ask', 'Hello', '--timeout', '1').ended, {
    status: 75,
    err: /not over after 1 s: no worker has begun to reply/,
  });
});
