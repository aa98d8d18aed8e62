import { z } from 'zod';
import { call } from '../../engine/db/call.ts';
import { organizationId, uuid } from '../fields/ids.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { responseSchema } from './changes.ts';
import {
  getInboxItem,
  inboxItemExample,
  inboxItemResult,
  inboxItemSchema,
  inboxListQuery,
  inboxSummarySchema,
  listInboxItems,
  summarizeInbox,
} from './schema.ts';

const ITEM = '/organizations/{organizationId}/human-inbox/{inboxItemId}';
const params = { organizationId, inboxItemId: uuid.describe('The inbox item.') };
const notFound = {
  status: 404,
  code: 'human_inbox_item_not_found',
  when: 'the item does not exist in this organization',
} as const;
const notOpen = {
  status: 409,
  code: 'human_inbox_item_not_open',
  when: 'somebody has handled the item, or its task has ended',
};

const answered = {
  ...inboxItemExample,
  status: 'responded',
  response: 'Count returns',
  respondedAt: '2026-11-27T10:05:13.720Z',
  updatedAt: '2026-11-27T10:05:13.720Z',
} as const;

const acknowledged = {
  ...inboxItemExample,
  kind: 'notification',
  status: 'acknowledged',
  purpose: 'agent',
  blocking: false,
  title: 'Three regions have no orders',
  body: 'They are listed in the report with zeros.',
  options: [],
  allowFreeText: false,
  runId: null,
  respondedAt: '2026-11-27T10:05:13.720Z',
  updatedAt: '2026-11-27T10:05:13.720Z',
} as const;

/** The inbox, for people. */
export function humanInboxEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      method: 'get',
      path: '/organizations/{organizationId}/human-inbox',
      audience: 'owner',
      tag: 'Inbox',
      operationId: 'listHumanInbox',
      summary: 'List inbox items',
      description: 'Newest first. Without `status` the list has the open items.',
      params: { organizationId },
      query: inboxListQuery,
      response: { data: z.array(inboxItemSchema), list: true },
      example: { data: [inboxItemExample] },
      handler: ({ db, params, query }) => listInboxItems(db, params.organizationId, query),
    }),
    endpoint({
      method: 'get',
      path: '/organizations/{organizationId}/inbox/summary',
      audience: 'owner',
      tag: 'Inbox',
      operationId: 'summarizeInbox',
      summary: 'Count open inbox items',
      description: 'Numbers by kind, for a badge.',
      params: { organizationId },
      response: { data: inboxSummarySchema },
      handler: ({ db, params }) => summarizeInbox(db, params.organizationId),
    }),
    endpoint({
      method: 'get',
      path: ITEM,
      audience: 'owner',
      tag: 'Inbox',
      operationId: 'getHumanInboxItem',
      summary: 'Get an inbox item',
      description: 'Items of any status.',
      params,
      response: { data: inboxItemSchema },
      errors: [notFound],
      example: { data: inboxItemExample },
      handler: ({ db, params }) => getInboxItem(db, params.organizationId, params.inboxItemId),
    }),
    endpoint({
      method: 'post',
      path: `${ITEM}/respond`,
      audience: 'owner',
      tag: 'Inbox',
      operationId: 'respondToHumanInboxItem',
      summary: 'Answer a question',
      description: [
        'What follows depends on the `purpose` of the item:',
        '',
        '- `repair`: `try_again` runs the task again, `accept` completes it with the refused result and the disposition `accepted`, `cancel` cancels it',
        '- `budget`: `raise` adds one allowance (for runs and replans the default of the task kind, for a spend limit its own amount), `cancel` cancels the task',
        '- `prerequisite`: `retry` retries the task that it waits for, `remove` removes the dependency, `wait` changes nothing, `cancel` cancels the task',
        '- questions of agents: the answer is added to `state.answers` of the task, and a task that waits for it continues',
        '',
        '400 if the item is not a question, or if the response is not one of the options and has to be.',
      ].join('\n'),
      params,
      body: responseSchema,
      response: { data: inboxItemSchema },
      errors: [notFound, notOpen, { status: 409, code: 'state_conflict', when: 'a prerequisite cannot be retried' }],
      example: { body: { response: 'Count returns' }, data: answered },
      decision: { action: 'inbox_item.respond', subject: 'inbox_item', id: ['item', 'id'] },
      async handler({ db, params, body, decision }) {
        const args = {
          organizationId: params.organizationId,
          inboxItemId: params.inboxItemId,
          response: body.response,
          note: body.note,
        };
        const { item } = await call(db, 'human_inbox_respond', args, inboxItemResult, decision);
        return item;
      },
    }),
    endpoint({
      method: 'post',
      path: `${ITEM}/acknowledge`,
      audience: 'owner',
      tag: 'Inbox',
      operationId: 'acknowledgeHumanInboxItem',
      summary: 'Acknowledge a notification',
      description: 'Takes it off the list of open items; nothing else follows. 400 if the item is not a notification.',
      params,
      response: { data: inboxItemSchema },
      errors: [notFound, notOpen],
      example: { data: acknowledged },
      decision: { action: 'inbox_item.acknowledge', subject: 'inbox_item', id: ['item', 'id'] },
      async handler({ db, params, decision }) {
        const args = { organizationId: params.organizationId, inboxItemId: params.inboxItemId };
        return (await call(db, 'human_inbox_acknowledge', args, inboxItemResult, decision)).item;
      },
    }),
  ];
}
