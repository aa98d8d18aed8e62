import fc from 'fast-check';
import t from 'tap';
import { errorEnvelopeSchema } from '../../../../api/http/envelope.ts';
import { publishBuiltinCatalog } from '../../../../engine/catalog/index.ts';
import { receiptKeys } from '../../../../engine/receipts/index.ts';
import { expectSuccess, runTask, sqlOf, workerOf } from '../../../support/api_fixtures.ts';
import { ADMIN_TOKEN, OWNER_TOKEN, SERVICE_TOKEN, startTestApp } from '../../../support/app.ts';
import { createTestOrganization } from '../../../support/fixtures.ts';
import { rounds } from '../../../support/full.ts';
import { type Operation, readOpenApi } from '../../../support/openapi.ts';
import { requestArbitrary } from '../../../support/request_arbitrary.ts';
import { hintsOf } from '../../../support/request_hints.ts';
import { createSender, pathOf, type SentResponse } from '../../../support/request_sending.ts';
import type { JsonSchema } from '../../../support/schema_arbitrary.ts';
import { makeWorld, ofOnboarding, type World } from '../../../support/worlds.ts';

// The same requests in every run.
// To dig: npx node test/slow/api/http/openapi_fuzz.test.ts 500 7 (rounds of each operation, seed).
const [asked, seed] = process.argv.slice(2).map(Number);
const ROUNDS = asked ?? rounds({ short: 3, full: 25 });
const SEED = seed ?? 20_261_128;
const MORE_ROUNDS = 8;
/** Fresh organizations for an operation that ends what it acts on. */
const WORLDS = rounds({ short: 1, full: 6 });

const app = await startTestApp(t, {
  config: {
    logLevel: 'error',
    retryBackoffSeconds: 1,
    receiptKeys: receiptKeys.parse(Buffer.alloc(32, 1).toString('base64')),
  },
});
const sql = sqlOf(app);
await publishBuiltinCatalog(app.services.db);
const { operations, components } = await readOpenApi(app.owner);

const send = createSender(t, app.url);

function isEnvelope(schema: JsonSchema | undefined): boolean {
  const [envelope] = (schema?.['allOf'] ?? []) as readonly JsonSchema[];
  return /(Success|Created|Accepted|Page)Envelope$/.test(String(envelope?.['$ref']));
}

/** What is wrong with a body. */
const OF_BODIES = [408, 413, 415];

/** What any call of an audience may get stands in the document once, as the default of its operations. */
function usualRefusal({ method, responses }: Operation, { status, body }: SentResponse) {
  const usual = responses['default'];
  // Without a body there is no code to compare.
  if (method === 'HEAD') return usual?.description.includes(`- ${status} `) ? usual : undefined;
  const code = status >= 400 && body.length > 0 ? JSON.parse(body.toString('utf8')).error?.code : undefined;
  return usual?.description.includes(`${status} \`${code}\`: `) ? usual : undefined;
}

/** Why a response is not one that the document allows; undefined when all is well. */
function fault(operation: Operation, response: SentResponse): string | undefined {
  const { status, type, body } = response;
  if (status >= 500) return `status ${status}`;
  const declared = operation.responses[status] ?? usualRefusal(operation, response);
  // Broken paths are refused before it is known whose they are.
  // A body where none is taken is refused as everywhere, and not mentioned.
  const unmentioned = [400, 404, 405, ...(operation.body ? [] : OF_BODIES)];
  if (!declared && !unmentioned.includes(status)) return `status ${status} is not declared`;
  if (operation.method === 'HEAD' || status === 304) return body.length === 0 ? undefined : 'a body where none may be';
  // What is not an envelope by its description: bytes, metrics, the document itself.
  if (status < 400 && !isEnvelope(declared?.content?.['application/json']?.schema)) return undefined;
  if (type !== 'application/json; charset=utf-8') return `content type ${type}`;
  const envelope = JSON.parse(body.toString('utf8'));
  if (status < 400)
    return envelope.success === true && envelope.statusCode === status ? undefined : 'no success envelope';
  // GraphQL's own word for what it did not execute.
  const { errors } = envelope;
  if (operation.operationId === 'postAdminGraphql' && status === 400 && Array.isArray(errors)) {
    const known = errors.every(({ extensions }) => extensions.code === 'validation_failed' && extensions.requestId);
    return known && errors.length > 0 ? undefined : 'an error of GraphQL without its code';
  }
  const { success, data } = errorEnvelopeSchema.strict().safeParse(envelope);
  if (!success || data.statusCode !== status) return 'no error envelope';
  if (status === 400 && (data.error.issues ?? []).length === 0) return 'a 400 without issues';
  const invalid = ofOnboarding(operation) ? 'request_failed' : 'validation_failed';
  const own = operation.responses[400]?.description.includes(`\`${data.error.code}\``);
  if (status === 400 && data.error.code !== invalid && !own) return `400 ${data.error.code}`;
  const named = [declared, usualRefusal(operation, response)].some((one) =>
    one?.description.includes(`\`${data.error.code}\``),
  );
  if (declared && status !== 404 && !named) return `${data.error.code} is not declared`;
  return undefined;
}

/**
 * What asks a provider, or is for a connection, an epoch or a file that no generator knows: test/api/{integrations,gateway,git} have
 * them succeed.
 */
const OF_CONNECTIONS =
  /^(executeTool|(get|begin|complete)InvocationFile(Head)?|(discover|fetchFrom|pushTo)Repository|start\w+Authorization|revoke\w+Grant|putIntegration(Credential|Settings)|discoverIntegration|listIntegration(Stores|Resources|Properties)|resolveIntegration)$/;

/** After these succeed, what they acted on is over, and the rest of the round would see nothing but that. */
const ending =
  /^(startRun|markRunRunning|completeRun|failRun|cancelTask|retryTask|(create|update|delete)Organization|deleteMember|(update|delete)AgentProfile|updateTask|deleteSchedule|deleteIntegration|(approve|reject|reconcile)Action|respondTo|acknowledge|createMessage|cancelMessage|(update|delete)Chat|writeRunMessage|(discard|start|complete|update|put|retry|delete)Onboarding)/;

function tokenOf({ operationId, path }: Operation): string | undefined {
  if (operationId === 'researchOnboarding') return '@capability@';
  if (path.startsWith('/internal/admin')) return ADMIN_TOKEN;
  if (/^\/internal\/(cli|git)\//.test(path)) return '@gatewayCapability@';
  if (path.startsWith('/internal/')) return SERVICE_TOKEN;
  return /\/(integrations|actions)\b/.test(path) ? OWNER_TOKEN : undefined;
}

/** Younger than its leases last. */
const SHARED_MS = 30_000;
let shared: Readonly<{ world: World; until: number }> | undefined;

/** What is only read is for all: a world takes longer to make than to ask about. */
async function worldFor(operation: Operation): Promise<World> {
  if (operation.method !== 'GET' || ofOnboarding(operation)) return makeWorld(app, operation);
  if (!shared || performance.now() > shared.until) {
    shared = { world: await makeWorld(app, operation), until: performance.now() + SHARED_MS };
  }
  return shared.world;
}

async function fuzz(operation: Operation): Promise<Map<number, number>> {
  const statuses = new Map<number, number>();
  let worlds = 1;
  let world = await worldFor(operation);
  const token = tokenOf(operation);
  const requests = requestArbitrary(operation, { components, hints: hintsOf(operation), token });
  const responses = fc.asyncProperty(requests, async (given) => {
    const response = await send(operation, given, world);
    statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
    const wrong = fault(operation, response);
    if (wrong) {
      const sent = `${operation.method} ${pathOf(operation, given, world)}`;
      throw new Error(`${wrong}: ${sent} → ${response.body.toString('utf8').slice(0, 500)}`);
    }
    if (response.status < 300 && ending.test(operation.operationId) && worlds < WORLDS) {
      worlds += 1;
      world = await makeWorld(app, operation);
    }
  });
  // Which requests come follows from the schemas: a few rounds may hold no good one, or no bad one.
  const isOneSided = () => [true, false].some((good) => ![...statuses.keys()].some((status) => status < 400 === good));
  for (let more = 0; more === 0 || (more < MORE_ROUNDS && isOneSided()); more += 1)
    await fc.assert(responses, { seed: SEED + more, numRuns: ROUNDS });
  return statuses;
}

t.test('no input makes a 5xx, and every response is one that the document describes', async (t) => {
  t.ok(operations.length > 40);
  for (const operation of operations) {
    await t.test(`${operation.method} ${operation.path}`, async (t) => {
      const statuses = await fuzz(operation);
      const seen = JSON.stringify(Object.fromEntries(statuses));
      t.ok(
        OF_CONNECTIONS.test(operation.operationId) || [...statuses.keys()].some((status) => status < 400),
        `some of it was good: ${seen}`,
      );
      if (operation.parameters.length > 0 || operation.body) {
        t.ok(
          [...statuses.keys()].some((status) => status >= 400),
          `and some of it bad: ${seen}`,
        );
      }
    });
  }
});

t.test('the app still works after all of it', async (t) => {
  const org = await createTestOrganization(sql);
  const run = await runTask(app, org);
  t.same(expectSuccess(await workerOf(app, run).complete()), { status: 'succeeded' });
  t.same(app.logged, [], 'nothing was logged as an error');
});
