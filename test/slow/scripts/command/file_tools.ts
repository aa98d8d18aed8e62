// Tools with files in place of those of Stripe, which have none: a read that brings one, and a write that takes one as `film`.
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { type Provider, providers } from '../../../../engine/providers/index.ts';
import type { ToolRuntime } from '../../../../engine/providers/tool.ts';
import type { TearDown } from '../../../support/database.ts';
import { CHARGES } from '../../../support/gateway_world.ts';

export function useFileTools(t: TearDown) {
  let brought = Buffer.from('film');
  const body = () => Readable.from([brought]);
  const parse: ToolRuntime['parse'] = (args) => ({ args });
  const read: ToolRuntime = {
    effect: 'read',
    parse,
    read: async () => ({
      data: {},
      file: { name: 'film.bin', contentType: 'application/octet-stream', body: body() },
    }),
  };
  const write: ToolRuntime = {
    effect: 'write',
    parse,
    files: { film: {} },
    summary: () => 'Send a film',
    execute: async () => ({}),
  };
  const known = providers as Map<string, Provider>;
  const stripe = known.get('stripe');
  if (!stripe) throw new Error('there is no Stripe');
  known.set('stripe', { ...stripe, runtime: ({ key }) => (key === CHARGES ? read : write) });
  const restore = () => {
    known.set('stripe', stripe);
  };
  t.teardown(async () => restore());
  return {
    restore,
    /** What the read brings from now on is so long. Returns its digest. */
    bring(size: number): string {
      brought = Buffer.alloc(size, 'film');
      return createHash('sha256').update(brought).digest('hex');
    },
  };
}
