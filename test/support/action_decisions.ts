import { type ActionRow, createProposer, makeUnknown, type Proposer, propose } from './action_fixtures.ts';
import type { Sql } from './transitions.ts';

/** The decisions on actions for the test of the audit log: each call, ready to be made, and what its entry says. */
export function actionDecisions(sql: Sql, own: (organizationId: string) => Promise<unknown>) {
  const one = (verb: string, body: object, make: (by: Proposer) => Promise<ActionRow>) => async () => {
    const by = await createProposer(sql);
    const { organizationId } = by.org;
    await own(organizationId);
    const { id, version, arguments_sha256: argumentsSha256 } = await make(by);
    const entry = {
      action: `action.${verb}`,
      subject_kind: 'action',
      subject_id: id,
      arguments: { actionId: id, ...body },
      result: { version, argumentsSha256 },
    };
    return { organizationId, path: `/organizations/${organizationId}/actions/${id}/${verb}`, body, entry };
  };
  return {
    approveAction: one('approve', { note: 'Go on' }, (by) => propose(sql, by)),
    rejectAction: one('reject', { reason: 'Too much' }, (by) => propose(sql, by)),
    reconcileAction: one('reconcile', { outcome: 'failed', note: 'I have looked' }, (by) => makeUnknown(sql, by)),
  };
}
