import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  chatAttachmentKey,
  contextKey,
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
  };
  for (const [name, make] of Object.entries(makers)) {
    test.ok(make().startsWith(organizationPrefix(organizationId)), name);
    test.not(make(), make(), name);
  }
  test.end();
});
