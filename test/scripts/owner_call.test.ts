import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import { callOwnerApi, OwnerApiError } from '../../scripts/owner_call.ts';

type Issue = Readonly<{ path: string; code: string; message: string }>;
const issue = (path: string, message: string): Issue => ({ path, code: 'any', message });

t.test('a refusal says each thing once: what its message says, and what its issues add', async (t) => {
  let refusal: Readonly<{ message: string; error: Readonly<{ issues: readonly Issue[] }> }>;
  const server = createServer((_, res) => {
    res.writeHead(409, { 'content-type': 'application/json' }).end(JSON.stringify(refusal));
  }).listen(0, '127.0.0.1');
  t.teardown(() => void server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;

  for (const [message, issues, reason] of [
    ['The action is failed', [issue('actionId', 'is failed')], 'The action is failed'],
    [
      'The integration is not available to this execution',
      [issue('integrationKey', 'is not available')],
      'The integration is not available to this execution',
    ],
    [
      'The address may not be called.',
      [issue('arguments', 'The address may not be called.')],
      'The address may not be called.',
    ],
    [
      'The action is at version 12',
      [issue('expectedVersion', 'the action is at version 1')],
      'The action is at version 12 (expectedVersion: the action is at version 1)',
    ],
    [
      'The request is not valid.',
      [issue('title', 'is empty'), issue('', 'is not valid'), issue('spec.objective', 'is missing')],
      'The request is not valid. (title: is empty; spec.objective: is missing)',
    ],
    ['The action has expired', [issue('actionId', '…')], 'The action has expired (actionId: …)'],
  ] as const) {
    refusal = { message, error: { issues } };
    const refused = callOwnerApi({ url: `http://127.0.0.1:${port}`, method: 'GET', path: '/' });
    const error = await refused.then(
      () => t.fail('it is refused'),
      (thrown: unknown) => thrown,
    );
    t.ok(error instanceof OwnerApiError);
    t.match(error, { status: 409, reason, issueCode: 'any' }, message);
  }
});
