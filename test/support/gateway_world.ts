// An API whose organizations use Stripe through the gateway. Stripe is a server on loopback that keeps refunds.
import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { z } from 'zod';
import type { Action } from '../../api/actions/schema.ts';
import { type Executing, executeAction } from '../../engine/gateway/index.ts';
import { integrationConfig } from '../engine/integrations/support.ts';
import { type Call, json, openServer } from '../engine/providers/support.ts';
import { agentPath, expectSuccess, type Fields, ownerPath, sqlOf } from './api_fixtures.ts';
import { startTestApp, type TestAppOptions } from './app.ts';
import { openAs, type TearDown } from './database.ts';
import { createTestOrganization, type Run, runNew, type TestOrganization, updateOrganization } from './fixtures.ts';
import type { Client } from './http.ts';
import { allow } from './integration_fixtures.ts';

export const REFUND = 'stripe.refunds.create';
export const CHARGES = 'stripe.charges.list';

type Refund = Readonly<{ id: string; status: string; metadata: Record<string, string> }>;

/** What it does besides its own: before anything is done, or after. */
type Fault = (call: Call, res: ServerResponse) => boolean | Promise<boolean>;

/** A stand-in for Stripe: what was paid back is in `refunds`, one for each idempotency key. */
export async function openStripe(t: TearDown) {
  const refunds = new Map<string, Refund>();
  const faults: { before?: Fault | undefined; after?: Fault | undefined; charges?: unknown } = {};
  const server = await openServer(t, async (call, res) => {
    if (call.url.pathname === '/v1/account') return { id: 'acct_1', country: 'SE', default_currency: 'sek' };
    if (await faults.before?.(call, res)) return undefined;
    if (call.url.pathname === '/v1/charges') {
      return (
        faults.charges ?? {
          data: [
            { id: 'ch_1', amount: 100 },
            { id: 'ch_2', amount: 200 },
          ],
          has_more: true,
        }
      );
    }
    if (call.url.pathname !== '/v1/refunds') return void json(res, 404, { error: { type: 'invalid_request_error' } });
    if (call.method === 'GET') return { data: [...refunds.values()] };
    const form = new URLSearchParams(call.body);
    const key = String(call.headers['idempotency-key']);
    const made = refunds.get(key) ?? {
      id: `re_${refunds.size + 1}`,
      status: 'succeeded',
      metadata: { business_runner_action: form.get('metadata[business_runner_action]') ?? '' },
    };
    refunds.set(key, made);
    if (await faults.after?.(call, res)) return undefined;
    return made;
  });
  const sent = () => server.calls.filter(({ method }) => method === 'POST').length;
  const asked = () => server.calls.filter(({ url }) => url.pathname === '/v1/charges').length;
  return { ...server, refunds, faults, sent, asked };
}

/** Of a task, or a chat turn. */
type Execution = Pick<Run, 'runId' | 'executionToken'>;

/** An execution that may call the gateway. */
export type Caller<R extends Execution = Run> = Readonly<{
  org: TestOrganization;
  integrationId: string;
  run: R;
  capability: string;
  /** Sends the capability. */
  client: Client;
}>;

const resolved = z.object({ integration: z.object({ id: z.uuid() }), gateway: z.object({ capability: z.string() }) });

/** `origins`: of other providers. */
type GatewayOptions = TestAppOptions & Readonly<{ origins?: Readonly<Record<string, string>> }>;

export async function openGateway(t: TearDown, { origins = {}, ...options }: GatewayOptions = {}) {
  const stripe = await openStripe(t);
  const { integrations } = integrationConfig({ origins: { 'https://api.stripe.com': stripe.origin, ...origins } });
  // Nothing here beats, and moving a large file takes longer than a lease.
  const config = { integrations, allowPrivateAddresses: true, leaseSeconds: 3_000, ...options.config };
  const app = await startTestApp(t, { ...options, config });
  const sql = sqlOf(app);

  /** Another capability of an execution. */
  async function resolve<R extends Execution>(org: TestOrganization, run: R): Promise<Caller<R>> {
    const { rows } = await sql.owner.query('select authorization_epoch from app.organizations where id = $1', [
      org.organizationId,
    ]);
    const body = { integrationKey: 'shop', authorizationEpoch: rows[0].authorization_epoch, kind: 'cli' };
    const agent = app.owner.as(run.executionToken);
    const { integration, gateway } = resolved.parse(
      expectSuccess(await agent.post(agentPath(org, '/integrations/resolve'), body)),
    );
    const { capability } = gateway;
    return { org, run, integrationId: integration.id, capability, client: app.owner.as(capability) };
  }

  /** A connected shop, all of whose tools are on. */
  async function connectShop(org: TestOrganization): Promise<void> {
    const at = (rest: string) => ownerPath(org, `/integrations${rest}`);
    expectSuccess(await app.owner.post(at(''), { key: 'shop', provider: 'stripe' }), 201);
    expectSuccess(await app.owner.put(at('/shop/credential'), { kind: 'api_key', apiKey: 'rk_test_1' }));
    expectSuccess(await app.owner.put(at('/shop/tools'), { accessMode: 'full' }));
    await allow(sql, org, 'integrations.read', 'integrations.propose');
  }

  /** An organization with such a shop, and a run. */
  async function caller(patch?: Fields, runFields: Fields = {}): Promise<Caller> {
    const org = await createTestOrganization(sql);
    if (patch) await updateOrganization(sql.api, org, patch);
    await connectShop(org);
    return resolve(org, await runNew(sql, org, runFields));
  }

  // As the job process has it, with the rights of the jobs.
  const jobs = openAs(app.database.url, { role: 'runner_jobs', size: 8, applicationName: 'test actions' });
  t.teardown(() => jobs.end());
  const executing: Executing = {
    storage: app.services.storage,
    git: app.services.git,
    integrations: { ...app.services.integrations, db: jobs, refreshes: new Map() },
    approvalDays: app.services.config.actionApprovalDays,
  };
  return {
    app,
    sql,
    stripe,
    caller,
    connectShop,
    resolve,
    /** A call of a tool; `invocationId`: another one each time. */
    execute: (by: Caller<Execution>, body: Fields, invocationId: string = randomUUID(), client = by.client) =>
      client.post<Fields & { action?: Action }>(
        `/internal/cli/integrations/${by.integrationId}/invocations/${invocationId}/execute`,
        body,
      ),
    /** What a job does with an action that is due. `over`: of its surroundings, something else. */
    runAction: (by: Pick<Caller, 'org'>, actionId: string, over: Partial<Executing> = {}) =>
      executeAction({ ...executing, ...over }, { organizationId: by.org.organizationId, actionId }),
    action: async (by: Pick<Caller, 'org'>, id: string) =>
      expectSuccess(await app.owner.get<Action>(ownerPath(by.org, `/actions/${id}`))),
    approve: async (by: Pick<Caller, 'org'>, id: string) =>
      expectSuccess(await app.owner.post<Action>(ownerPath(by.org, `/actions/${id}/approve`))),
  };
}
