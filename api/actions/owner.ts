import { z } from 'zod';
import { call } from '../../engine/db/call.ts';
import { organizationId, uuid } from '../fields/ids.ts';
import type { OwnerCaller } from '../http/caller.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { approvalBody, reconciliationBody, rejectionBody } from './changes.ts';
import { actionListQuery, getAction, listActions } from './list.ts';
import { actionReceipt, receiptExample, receiptSchema } from './receipt.ts';
import {
  actionExample,
  actionResult,
  actionSchema,
  approvedExample,
  reconciledExample,
  rejectedExample,
} from './schema.ts';

const ACTIONS = '/organizations/{organizationId}/actions';
const ACTION = `${ACTIONS}/{actionId}` as const;

const one = {
  audience: 'owner',
  tag: 'Actions',
  params: { organizationId, actionId: uuid.describe('The action.') },
  response: { data: actionSchema },
} as const;
const notFound = {
  status: 404,
  code: 'action_not_found',
  when: 'there is no such action in this organization',
} as const;
const conflict = { status: 409, code: 'state_conflict', when: 'it was decided otherwise, or has expired' } as const;
const decided = { ...one, method: 'post', ownerToken: true, errors: [notFound, conflict] } as const;
const about = { subject: 'action', id: ['action', 'id'] } as const;

/** Who decides, as the action keeps it. A viewer does not come this far: the membership was checked before. */
function deciderOf({ subject, mode }: OwnerCaller) {
  return { kind: 'owner', by: subject ?? mode, role: 'owner' };
}

/** Actions of an organization, for people. */
export function actionEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      method: 'get',
      path: ACTIONS,
      audience: 'owner',
      tag: 'Actions',
      operationId: 'listActions',
      summary: 'List actions',
      description: 'Newest first.',
      params: { organizationId },
      query: actionListQuery,
      response: { data: z.array(actionSchema), list: true },
      example: { data: [actionExample] },
      handler: ({ db, params, query }) => listActions(db, params.organizationId, query),
    }),
    endpoint({
      ...one,
      method: 'get',
      path: ACTION,
      operationId: 'getAction',
      summary: 'Get an action',
      description: 'Of any status.',
      errors: [notFound],
      example: { data: actionExample },
      handler: ({ db, params }) => getAction(db, params.organizationId, params.actionId),
    }),
    endpoint({
      audience: 'owner',
      tag: 'Actions',
      params: one.params,
      method: 'get',
      path: `${ACTION}/receipt`,
      operationId: 'getActionReceipt',
      summary: 'Get the receipt of an action',
      description:
        'Of one that is over: what it was, who decided and what became of it, signed. Not an envelope; a repeat is the same bytes. `business-runner receipt verify` checks it.',
      errors: [notFound, { status: 409, code: 'state_conflict', when: 'it is not over, or no `RECEIPT_KEYS` are set' }],
      response: {
        stream: true,
        mediaType: 'application/json',
        description: 'RFC 8785 JSON.',
        schema: receiptSchema,
      },
      example: { data: receiptExample },
      async handler({ db, params, services, res }) {
        const { receiptKeys } = services.config;
        const text = await actionReceipt(db, receiptKeys, params.organizationId, params.actionId);
        res.set({ 'Content-Type': 'application/json; charset=utf-8', 'Cache-Control': 'no-store' }).end(text);
      },
    }),
    endpoint({
      ...decided,
      path: `${ACTION}/approve`,
      operationId: 'approveAction',
      summary: 'Approve an action',
      description: 'It is executed next, after everything was checked again. A repeat changes nothing.',
      body: approvalBody,
      example: {
        body: {
          expectedVersion: 1,
          argumentsSha256: actionExample.argumentsSha256,
          note: approvedExample.decision.note,
        },
        data: approvedExample,
      },
      decision: { action: 'action.approve', ...about },
      async handler({ db, params, body, caller, decision }) {
        const { expectedVersion, argumentsSha256, note } = body;
        const args = { ...params, expectedVersion, argumentsSha256, note, actor: deciderOf(caller) };
        return (await call(db, 'action_approve', args, actionResult, decision)).action;
      },
    }),
    endpoint({
      ...decided,
      path: `${ACTION}/reject`,
      operationId: 'rejectAction',
      summary: 'Reject an action',
      description: 'Final. Agents read the reason. A repeat changes nothing.',
      body: rejectionBody,
      example: { body: { reason: rejectedExample.decision.note }, data: rejectedExample },
      decision: { action: 'action.reject', ...about },
      async handler({ db, params, body: { reason }, caller, decision }) {
        const args = { ...params, reason, actor: deciderOf(caller) };
        return (await call(db, 'action_reject', args, actionResult, decision)).action;
      },
    }),
    endpoint({
      ...decided,
      path: `${ACTION}/reconcile`,
      operationId: 'reconcileAction',
      summary: 'Say what became of an action',
      description:
        'Of one whose status is `unknown`: nothing shows whether it was executed. Final; the same outcome again changes nothing. Another attempt is a new proposal.',
      body: reconciliationBody,
      example: {
        body: { outcome: 'succeeded', note: reconciledExample.reconciliation.note },
        data: reconciledExample,
      },
      decision: { action: 'action.reconcile', ...about },
      async handler({ db, params, body: { outcome, note }, caller, decision }) {
        const args = { ...params, outcome, note, actor: deciderOf(caller) };
        return (await call(db, 'action_reconcile', args, actionResult, decision)).action;
      },
    }),
  ];
}
