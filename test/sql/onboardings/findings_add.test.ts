import t from 'tap';
import { claimTurn, createChat, send, startTurn } from '../../support/chat_fixtures.ts';
import { capability, SERVICE, type TestOrganization } from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { type Onboarding, onboardingIn, page, placeOf, publishCatalog } from '../../support/onboarding_fixtures.ts';
import { type JsonObject, openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);
await publishCatalog(sql);

const unauthorized = { status: 401, code: 'agent_unauthorized' };
const orgOf = (onboarding: Onboarding): TestOrganization => ({ ...placeOf(onboarding), profileId: '', profileKey: '' });

/** Both ways in which a turn may add to an onboarding. */
const calls = (organizationId: string, actor: JsonObject) => [
  () => transition(sql.api, 'onboarding_findings_add', { organizationId, findings: [], warnings: [], actor }),
  () => transition(sql.api, 'onboarding_evidence_add', { organizationId, generation: null, source: page('/'), actor }),
];

/** The turn under way in a chat, as who acts in it. */
async function actorIn(org: TestOrganization, chatId: string) {
  await send(sql.api, org, chatId);
  return capability((await startTurn(sql.api, await claimTurn(sql, org))).executionToken);
}

scenario('a turn of the onboarding chat adds to its onboarding, and nobody else', async (test) => {
  const onboarding = await onboardingIn(sql, 'review');
  const org = orgOf(onboarding);
  const actor = await actorIn(org, String(onboarding.chat_id));
  for (const call of calls(org.organizationId, actor)) await call();
  for (const call of calls(org.organizationId, SERVICE)) test.match(await refusal(call()), unauthorized);
  const other = await onboardingIn(sql, 'review');
  for (const call of calls(other.organization_id, actor)) test.match(await refusal(call()), unauthorized);
});

scenario('a turn of another chat does not, whatever the state', async (test) => {
  const onboarding = await onboardingIn(sql, 'completed');
  const org = orgOf(onboarding);
  const actor = await actorIn(org, (await createChat(sql, org)).id);
  for (const call of calls(org.organizationId, actor)) test.match(await refusal(call()), unauthorized);
});
