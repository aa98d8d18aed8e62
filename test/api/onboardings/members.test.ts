import t from 'tap';
import type { Onboarding } from '../../../api/onboardings/schema.ts';
import { expectSuccess, ownerPath, refusalOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { startIssuer } from '../../support/jwt.ts';
import { onboardingPath, publish, putSource } from './support.ts';

const issuer = await startIssuer(t);
const app = await startTestApp(t, { config: { ownerAuth: issuer.ownerAuth } });
await publish(app);
const as = async (subject: string) => app.owner.as(await issuer.token(subject));
const anna = await as('anna');
const vic = await as('vic');
const eve = await as('eve');

t.test('whoever onboards an organization owns it; viewers read, and for others it is not there', async (t) => {
  const onboarding = expectSuccess(await anna.post<Onboarding>('/organization-onboardings', { name: 'Anna' }), 201);
  const path = onboardingPath(onboarding);
  expectSuccess(await anna.put(ownerPath(onboarding, '/members/vic'), { role: 'viewer' }));
  t.same(expectSuccess(await vic.get(path)), onboarding);
  t.equal(refusalOf(await eve.get(path)), '404 request_failed');
  t.equal(refusalOf(await app.owner.get(path)), '401 owner_unauthorized');
  for (const [client, refused] of [
    [vic, '403 forbidden'],
    [eve, '404 request_failed'],
  ] as const) {
    t.equal(refusalOf(await client.patch(`${path}/setup`, { expectedGeneration: 1, name: 'x' })), refused);
    t.equal(refusalOf(await putSource(app, onboarding, 'x', { client })), refused);
    t.equal(refusalOf(await client.post(`${path}/start`)), refused);
    t.equal(refusalOf(await client.delete(path)), refused);
  }
  t.same(expectSuccess(await anna.get(path)), onboarding);
  expectSuccess(await putSource(app, onboarding, 'x', { client: anna }), 201);
  t.match(expectSuccess(await anna.post(`${path}/start`)), { status: 'researching' });
  expectSuccess(await anna.delete(path));
  t.equal(refusalOf(await anna.get(path)), '404 request_failed');
});
