// Uses connections in a process of its own, as often at once as it is told. The settings come as JSON in its one argument.
import pino from 'pino';
import { Registry } from 'prom-client';
import { z } from 'zod';
import { openIntegrations, useConnection } from '../../../engine/integrations/index.ts';
import { openAs } from '../../support/database.ts';
import { integrationConfig } from './support.ts';

const settings = z
  .object({ databaseUrl: z.string(), origins: z.record(z.string(), z.string()), keys: z.string().optional() })
  .parse(JSON.parse(process.argv[2] ?? ''));
const order = z.object({
  target: z.object({ organizationId: z.string(), integrationId: z.string(), revision: z.int() }),
  times: z.int(),
});

const { databaseUrl, origins, keys } = settings;
const db = openAs(databaseUrl, { role: 'runner_jobs', size: 8, applicationName: 'test process' });
const integrations = openIntegrations({
  config: integrationConfig({ origins, ...(keys === undefined ? {} : { keys }) }),
  db,
  registry: new Registry(),
  log: pino({ level: 'silent' }),
});

process.on('message', async (message) => {
  const { target, times } = order.parse(message);
  const one = () =>
    useConnection(integrations, target, async ({ provider, context, access }) => provider.verify(context, access));
  const results = await Promise.allSettled(Array.from({ length: times }, one));
  const labels = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value.label] : []));
  const errors = results.flatMap((result) => (result.status === 'rejected' ? [String(result.reason)] : []));
  process.send?.({ labels, errors });
});
process.on('disconnect', () => process.exit(0));
