import { z } from 'zod';
import { quoted } from '../texts.ts';
import { CursorError, type LookUpResult, type ReadCall, toolsOf, type WriteCall } from '../tool.ts';
import { type Credential, ORIGIN, requestOf, site } from './site.ts';

const { read, write } = toolsOf<Credential, unknown>();

const limit = z.int().min(1).max(100).optional().describe('how many, newest first; by default 10');
const createdAfter = z.int().min(0).optional().describe('created at or after, in seconds since 1970');
const id = (what: string) =>
  z
    .string()
    .regex(/^[a-z]+_[A-Za-z0-9_]+$/)
    .max(255)
    .describe(`id of the ${what}`);

type Query = Readonly<Record<string, string | number | undefined>>;
const formOf = (values: Query) =>
  new URLSearchParams(
    Object.entries(values).flatMap(([name, value]): [string, string][] =>
      value === undefined ? [] : [[name, String(value)]],
    ),
  ).toString();

const page = z.object({ data: z.array(z.looseObject({ id: z.string() })), has_more: z.boolean() });
const record = z.looseObject({ id: z.string() });
const CURSOR = /^[a-z]+_[A-Za-z0-9_]{1,250}$/;

async function readPage({ context, access, cursor }: ReadCall<unknown, Credential>, path: string, query: Query) {
  if (cursor !== undefined && !CURSOR.test(cursor)) throw new CursorError();
  const url = `${ORIGIN}/v1/${path}?${formOf({ ...query, starting_after: cursor })}`;
  const { data, has_more: hasMore } = await context.client.json(
    site,
    { ...requestOf(context, access.credential), effect: 'read', url },
    page,
  );
  return { data, nextCursor: hasMore ? (data.at(-1)?.id ?? null) : null };
}

async function readOne({ context, access }: ReadCall<unknown, Credential>, path: string) {
  const request = { ...requestOf(context, access.credential), effect: 'read', url: `${ORIGIN}/v1/${path}` } as const;
  return { data: await context.client.json(site, request, record) };
}

const listArguments = { limit, createdAfter };
const common = (args: Readonly<{ limit?: number | undefined; createdAfter?: number | undefined }>): Query => ({
  limit: args.limit,
  'created[gte]': args.createdAfter,
});

type Resource = Readonly<{ path: string; one: string; many: string }>;
const CUSTOMERS: Resource = { path: 'customers', one: 'customer', many: 'customers' };
const CHARGES: Resource = { path: 'charges', one: 'charge', many: 'charges' };
const INVOICES: Resource = { path: 'invoices', one: 'invoice', many: 'invoices' };
const SUBSCRIPTIONS: Resource = { path: 'subscriptions', one: 'subscription', many: 'subscriptions' };
const TRANSACTIONS: Resource = {
  path: 'balance_transactions',
  one: 'balance transaction',
  many: 'balance transactions',
};

const listed = ({ path, many }: Resource) => ({
  key: `stripe.${path}.list`,
  title: `List ${many}`,
  description: `Lists ${many}, newest first.`,
});

const get = ({ path, one }: Resource) => {
  const what = `${/^[aeiou]/.test(one) ? 'an' : 'a'} ${one}`;
  return read({
    key: `stripe.${path}.get`,
    title: `Read ${what}`,
    description: `Reads ${what}.`,
    input: { id: id(one) },
    read: (call) => readOne(call, `${path}/${call.args.id}`),
  });
};

/** By this an object that was made or changed is found. */
const marker = (actionId: string): Query => ({ 'metadata[business_runner_action]': actionId });

/** Sent once; Stripe itself answers a second one by the same key with what the first did. */
async function post(call: WriteCall<unknown, Credential>, path: string, values: Query): Promise<unknown> {
  const { context, access, actionId } = call;
  const { headers, ...rest } = requestOf(context, access.credential);
  const done = await context.client.json(
    site,
    {
      ...rest,
      effect: 'write',
      method: 'POST',
      url: `${ORIGIN}/v1/${path}`,
      headers: { ...headers, 'content-type': 'application/x-www-form-urlencoded', 'idempotency-key': actionId },
      body: formOf(values),
    },
    z.looseObject({ id: z.string(), status: z.string().nullish() }),
  );
  return { id: done.id, status: done.status ?? null };
}

const marked = z.object({
  data: z.array(
    z.object({ id: z.string(), status: z.string().nullish(), metadata: z.record(z.string(), z.string()).nullish() }),
  ),
});

/** Among the newest of a list: one that is not there may come yet. */
async function findMarked(call: WriteCall<unknown, Credential>, path: string, query: Query): Promise<LookUpResult> {
  const { context, access, actionId } = call;
  const url = `${ORIGIN}/v1/${path}?${formOf({ ...query, limit: 100 })}`;
  const request = { ...requestOf(context, access.credential), effect: 'read', url } as const;
  const { data } = await context.client.json(site, request, marked);
  const found = data.find(({ metadata }) => metadata?.['business_runner_action'] === actionId);
  if (!found) return { outcome: 'none' };
  return { outcome: 'found', result: { id: found.id, status: found.status ?? null } };
}

const customerOf = { customer: id('customer').optional() };
const metadata = z.object({ id: z.string(), metadata: z.record(z.string(), z.string()).nullish() });

export const tools = [
  read({
    ...listed(CUSTOMERS),
    input: { ...listArguments, email: z.email().optional() },
    read: (call) => readPage(call, CUSTOMERS.path, { ...common(call.args), email: call.args.email }),
  }),
  get(CUSTOMERS),
  read({
    ...listed(CHARGES),
    input: { ...listArguments, ...customerOf },
    read: (call) => readPage(call, CHARGES.path, { ...common(call.args), customer: call.args.customer }),
  }),
  get(CHARGES),
  read({
    ...listed(INVOICES),
    input: {
      ...listArguments,
      ...customerOf,
      status: z.enum(['draft', 'open', 'paid', 'uncollectible', 'void']).optional(),
    },
    read: (call) => {
      const { customer, status } = call.args;
      return readPage(call, INVOICES.path, { ...common(call.args), customer, status });
    },
  }),
  get(INVOICES),
  read({
    ...listed(SUBSCRIPTIONS),
    input: {
      ...listArguments,
      ...customerOf,
      // Without `all` Stripe leaves cancelled ones out.
      status: z.enum(['all', 'active', 'past_due', 'unpaid', 'canceled', 'trialing', 'paused']).optional(),
    },
    read: (call) => {
      const { customer, status } = call.args;
      return readPage(call, SUBSCRIPTIONS.path, { ...common(call.args), customer, status });
    },
  }),
  get(SUBSCRIPTIONS),
  read({
    ...listed(TRANSACTIONS),
    input: listArguments,
    read: (call) => readPage(call, TRANSACTIONS.path, common(call.args)),
  }),
  get(TRANSACTIONS),
  read({
    key: 'stripe.balance.read',
    title: 'Read the balance',
    description: 'Reads what is available and pending, by currency.',
    input: {},
    async read({ context, access }) {
      const request = {
        ...requestOf(context, access.credential),
        effect: 'read',
        url: `${ORIGIN}/v1/balance`,
      } as const;
      return { data: await context.client.json(site, request, z.looseObject({ object: z.literal('balance') })) };
    },
  }),
  write({
    key: 'stripe.refunds.create',
    title: 'Refund a charge',
    description: 'Pays a charge back, whole or in part. The customer gets the money.',
    risk: 'high',
    input: {
      charge: id('charge'),
      amount: z
        .int()
        .min(1)
        .optional()
        .describe('in minor units of the charge’s currency; without it what is left of the charge'),
      reason: z.enum(['duplicate', 'fraudulent', 'requested_by_customer']).optional(),
    },
    summary: ({ args }) =>
      `Refund ${args.amount === undefined ? 'what is left' : `${args.amount} (in minor units of the charge’s currency)`} of charge ${args.charge}${
        args.reason === undefined ? '' : `, ${args.reason.replaceAll('_', ' ')}`
      }`,
    execute: (call) => post(call, 'refunds', { ...call.args, ...marker(call.actionId) }),
    lookUp: (call) => findMarked(call, 'refunds', { charge: call.args.charge }),
  }),
  write({
    key: 'stripe.customers.update',
    title: 'Change a customer',
    description: 'Changes name, email address, phone number or description of a customer.',
    risk: 'external',
    input: {
      customer: id('customer'),
      name: z.string().min(1).max(256).optional(),
      email: z.email().max(512).optional(),
      phone: z.string().min(1).max(20).optional(),
      description: z.string().max(5_000).optional(),
    },
    check: ({ customer: _, ...changes }) =>
      Object.values(changes).some((value) => value !== undefined)
        ? []
        : [{ path: [], message: 'changes nothing', code: 'required' }],
    summary: ({ args: { customer, ...changes } }) =>
      `Change customer ${customer}: ${Object.entries(changes)
        .flatMap(([name, value]) => (value === undefined ? [] : [`${name} to ${quoted(value)}`]))
        .join(', ')}`,
    execute({ args: { customer, ...changes }, ...call }) {
      return post({ ...call, args: undefined }, `customers/${customer}`, { ...changes, ...marker(call.actionId) });
    },
    // The marker of the last change: another one may have come since.
    async lookUp({ args, context, access, actionId }) {
      const url = `${ORIGIN}/v1/customers/${args.customer}`;
      const request = { ...requestOf(context, access.credential), effect: 'read', url } as const;
      const found = await context.client.json(site, request, metadata);
      if (found.metadata?.['business_runner_action'] !== actionId) return { outcome: 'none' };
      return { outcome: 'found', result: { id: found.id, status: null } };
    },
  }),
  write({
    key: 'stripe.invoices.send',
    title: 'Send an invoice',
    description: 'Sends an open invoice to its customer by e-mail.',
    risk: 'external',
    input: { invoice: id('invoice') },
    summary: ({ args }) =>
      `Send invoice ${args.invoice} by e-mail, to the customer and over the amount that it has at Stripe`,
    // Its only parameter is the path: Stripe refuses a marker.
    execute: (call) => post(call, `invoices/${call.args.invoice}/send`, {}),
  }),
];
