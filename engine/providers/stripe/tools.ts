import { z } from 'zod';
import { inputSchema, type Tool } from '../provider.ts';

const limit = z.int().min(1).max(100).optional().describe('how many, newest first');
const startingAfter = z.string().max(255).optional().describe('id of the last one of the page before');
const createdAfter = z.int().min(0).optional().describe('created at or after, in seconds since 1970');
const page = { limit, startingAfter };

const list = (key: string, title: string, more: z.ZodRawShape = {}): Tool => ({
  key: `stripe.${key}.list`,
  title: `List ${title}`,
  description: `Lists ${title}, newest first.`,
  effect: 'read',
  risk: 'low',
  scopes: [],
  inputSchema: inputSchema({ ...page, createdAfter, ...more }),
});

const id = (what: string) =>
  z
    .string()
    .regex(/^[a-z]+_[A-Za-z0-9]+$/)
    .max(255)
    .describe(`id of the ${what}`);

export const tools: readonly Tool[] = [
  list('customers', 'customers', { email: z.email().optional() }),
  list('charges', 'charges', { customer: id('customer').optional() }),
  list('invoices', 'invoices', {
    customer: id('customer').optional(),
    status: z.enum(['draft', 'open', 'paid', 'uncollectible', 'void']).optional(),
  }),
  list('subscriptions', 'subscriptions', {
    customer: id('customer').optional(),
    // Without `all` Stripe leaves cancelled ones out.
    status: z.enum(['all', 'active', 'past_due', 'unpaid', 'canceled', 'trialing', 'paused']).optional(),
  }),
  list('balance_transactions', 'balance transactions'),
  {
    key: 'stripe.balance.read',
    title: 'Read the balance',
    description: 'Reads what is available and pending, by currency.',
    effect: 'read',
    risk: 'low',
    scopes: [],
    inputSchema: inputSchema({}),
  },
  {
    key: 'stripe.refunds.create',
    title: 'Refund a charge',
    description: 'Pays a charge back, whole or in part. The customer gets the money.',
    effect: 'write',
    risk: 'high',
    scopes: [],
    inputSchema: inputSchema({
      charge: id('charge'),
      amount: z.int().min(1).optional().describe('in minor units; without it what is left of the charge'),
      reason: z.enum(['duplicate', 'fraudulent', 'requested_by_customer']).optional(),
    }),
  },
  {
    key: 'stripe.invoices.send',
    title: 'Send an invoice',
    description: 'Sends an open invoice to its customer by e-mail.',
    effect: 'write',
    risk: 'external',
    scopes: [],
    inputSchema: inputSchema({ invoice: id('invoice') }),
  },
];
