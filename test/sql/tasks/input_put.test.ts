import t from 'tap';
import { cancelTask, createTask, createTestOrganization, sha256 } from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { type Connection, openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

function putInput(
  connection: Connection,
  organizationId: string,
  ref: string,
  path: string,
  storageKey: string | null,
) {
  return transition(connection, 'task_input_put', {
    organizationId,
    taskRef: ref,
    path,
    storageKey,
    size: 5,
    sha256: sha256('x'),
    mediaType: 'text/csv',
    actor: { kind: 'owner' },
  });
}

scenario('an upload is recorded under its path, and replaced by the next', async (test) => {
  const org = await createTestOrganization(sql);
  const task = await createTask(sql, org);
  test.same(await putInput(sql.api, org.organizationId, 'T-1', 'a.csv', null), { taskId: task.id }, 'the look before');
  await putInput(sql.api, org.organizationId, task.id, 'a.csv', 'key-1');
  test.match(await putInput(sql.api, org.organizationId, task.id, 'a.csv', 'key-2'), {
    input: { storage_key: 'key-2' },
  });
  const { rows } = await sql.owner.query('select path, storage_key from app.task_inputs where task_id = $1', [task.id]);
  test.same(rows, [{ path: 'a.csv', storage_key: 'key-2' }]);
});

scenario('an upload needs an open task with room, in its own organization', async (test) => {
  const org = await createTestOrganization(sql);
  const foreign = await createTestOrganization(sql);
  const task = await createTask(sql, org);
  const missing = { status: 404, code: 'task_not_found' };
  test.match(await refusal(putInput(sql.api, foreign.organizationId, task.id, 'a', 'k')), missing);
  test.match(await refusal(putInput(sql.api, org.organizationId, 'T-7', 'a', null)), missing);
  await sql.owner.query(
    `insert into app.task_inputs (organization_id, task_id, path, storage_key, size, sha256, media_type)
     select $1, $2, 'f' || n, 'k' || n, 1, $3, 'text/plain' from generate_series(1, 200) n`,
    [org.organizationId, task.id, sha256('')],
  );
  test.match(await refusal(putInput(sql.api, org.organizationId, task.id, 'more', 'k')), {
    status: 409,
    code: 'state_conflict',
  });
  await putInput(sql.api, org.organizationId, task.id, 'f1', 'other');
  await cancelTask(sql.api, org, task.id);
  for (const key of [null, 'k']) {
    test.match(await refusal(putInput(sql.api, org.organizationId, task.id, 'f1', key)), {
      status: 409,
      code: 'state_conflict',
    });
  }
});
