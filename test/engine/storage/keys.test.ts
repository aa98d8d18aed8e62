import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  chatAttachmentKey,
  contextKey,
  contextKeyTime,
  invocationKey,
  invocationKeyTime,
  organizationPrefix,
  runContextKey,
  runOutputKey,
  taskInputKey,
} from '../../../engine/storage/index.ts';

t.test('every key lies below the prefix of its organization, and is fresh', (test) => {
  const [organizationId, id] = [randomUUID(), randomUUID()];
  const makers: Readonly<Record<string, () => string>> = {
    taskInput: () => taskInputKey(organizationId, id),
    runOutput: () => runOutputKey(organizationId, id),
    runContext: () => runContextKey(organizationId, id),
    chatAttachment: () => chatAttachmentKey(organizationId, id),
    document: () => contextKey(organizationId, 'documents'),
    source: () => contextKey(organizationId, 'sources'),
    health: () => contextKey(organizationId, 'health'),
    invocationFile: () => invocationKey(organizationId, 'files'),
    invocationUpload: () => invocationKey(organizationId, 'uploads'),
    response: () => invocationKey(organizationId, 'responses'),
  };
  for (const [name, make] of Object.entries(makers)) {
    test.ok(make().startsWith(organizationPrefix(organizationId)), name);
    test.not(make(), make(), name);
  }
  test.end();
});

t.test('a key says when it was made, and of another kind of key nothing is read', (test) => {
  const organizationId = randomUUID();
  const before = Date.now();
  for (const object of ['files', 'uploads', 'responses'] as const) {
    const key = invocationKey(organizationId, object);
    const made = invocationKeyTime(key) ?? 0;
    test.ok(made >= before && made <= Date.now(), object);
    test.equal(contextKeyTime(key), null);
    test.equal(invocationKeyTime(`${key}0`), null);
  }
  test.equal(invocationKeyTime(contextKey(organizationId, 'sources')), null);
  test.end();
});
