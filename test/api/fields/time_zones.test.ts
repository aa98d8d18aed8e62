import { randomUUID } from 'node:crypto';
import t, { type Test } from 'tap';
import type { Onboarding } from '../../../api/onboardings/schema.ts';
import type { Organization } from '../../../api/organizations/schema.ts';
import type { Schedule } from '../../../api/schedules/schema.ts';
import { agentPath, expectSuccess, ownerPath, sqlOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { createTestOrganization } from '../../support/fixtures.ts';
import type { Reply } from '../../support/http.ts';

const app = await startTestApp(t);
const org = await createTestOrganization(sqlOf(app));
const onboarding = expectSuccess(
  await app.owner.post<Onboarding>('/organization-onboardings', { name: 'Zones', timezone: 'UTC' }),
  201,
);

type Place = Readonly<{
  path: string;
  send: (timezone: string) => Promise<Reply<unknown>>;
  stored: (data: never) => string;
}>;

const schedule = (timezone: string) => ({
  cron: '0 9 * * *',
  timezone,
  taskTemplate: { title: 'Report', ownerProfileKey: org.profileKey },
});
const made = expectSuccess(await app.owner.post<Schedule>(ownerPath(org, '/schedules'), schedule('UTC')), 201);

const named = () => `zone-${randomUUID()}`;
const config = ({ config }: Organization) => config.timezone;

/** Everywhere a zone comes in. */
const PLACES: Readonly<Record<string, Place>> = {
  'a new organization': {
    path: 'config.timezone',
    send: (timezone) =>
      app.owner.post(`/organizations/${randomUUID()}`, { slug: named(), name: 'Zone', config: { timezone } }),
    stored: config,
  },
  'a changed organization': {
    path: 'config.timezone',
    send: (timezone) => app.owner.patch(ownerPath(org), { config: { timezone } }),
    stored: config,
  },
  'an onboarding by slug': {
    path: 'timezone',
    send: (timezone) =>
      app.owner.post('/organization-onboardings', { name: 'Zone', slug: named(), timezone, departments: ['growth'] }),
    stored: ({ setup }: Onboarding) => setup.timezone,
  },
  'an onboarding by website': {
    path: 'timezone',
    send: (timezone) => app.owner.post('/organization-onboardings', { name: 'Zone', timezone }),
    stored: ({ setup }: Onboarding) => setup.timezone,
  },
  'the setup of an onboarding': {
    path: 'timezone',
    async send(timezone) {
      const { generation } = expectSuccess(await app.owner.get<Onboarding>(ownerPath(onboarding, '/onboarding')));
      return app.owner.patch(ownerPath(onboarding, '/onboarding/setup'), { expectedGeneration: generation, timezone });
    },
    stored: ({ setup }: Onboarding) => setup.timezone,
  },
  'a schedule': {
    path: 'timezone',
    send: (timezone) => app.service.post(agentPath(org, '/schedules'), schedule(timezone)),
    stored: ({ timezone }: Schedule) => timezone,
  },
  'a schedule of an owner': {
    path: 'timezone',
    send: (timezone) => app.owner.post(ownerPath(org, '/schedules'), schedule(timezone)),
    stored: ({ timezone }: Schedule) => timezone,
  },
  'a changed schedule': {
    path: 'timezone',
    async send(timezone) {
      const path = ownerPath(org, `/schedules/${made.id}`);
      const { version: expectedVersion } = expectSuccess(await app.owner.get<Schedule>(path));
      return app.owner.patch(path, { expectedVersion, timezone });
    },
    stored: ({ timezone }: Schedule) => timezone,
  },
};

function refused(t: Test, reply: Reply<unknown>, path: string, message: RegExp): void {
  t.equal(reply.status, 400);
  t.match(reply.body.error, { issues: [{ path, message }] });
  t.equal(reply.body.error.issues?.length, 1);
}

for (const [place, { path, send, stored }] of Object.entries(PLACES)) {
  t.test(`${place} takes names of places, old ones too`, async (t) => {
    for (const name of ['Asia/Calcutta', 'US/Pacific', 'Etc/GMT+5', 'Europe/Berlin', 'UTC']) {
      const reply = await send(name);
      t.ok(reply.status < 300, `${name}: ${JSON.stringify(reply.body)}`);
      t.equal(stored(reply.data as never), name);
    }
  });

  t.test(`${place} takes no abbreviation, and says what may be meant`, async (t) => {
    refused(t, await send('BST'), path, /; use Europe\/London or Asia\/Dhaka instead$/);
    refused(t, await send('IST'), path, /; use Asia\/Kolkata or Asia\/Jerusalem or Europe\/Dublin instead$/);
    refused(t, await send('EST5EDT'), path, /; use America\/New_York instead$/);
    refused(t, await send('+02:00'), path, /; use Etc\/GMT-2 instead$/);
    refused(t, await send('Mars/Olympus'), path, /Europe\/Berlin$/);
    refused(t, await send('posix/Europe/Berlin'), path, /Europe\/Berlin$/);
    refused(t, await send('LAMP-3'), path, /Europe\/Berlin$/);
  });
}

t.test(
  'a zone that the database knows by other rules is refused everywhere, and one of the same clocks named',
  async (t) => {
    const { owner } = app.database;
    // Rules of another year, in the one place that compares them.
    const { rows } = await owner.query<{ source: string }>(
      `select pg_get_functiondef('app.timezone_matches'::regproc) as source`,
    );
    const source = rows[0]?.source ?? '';
    await owner.query(
      source.replace(
        /begin\n/i,
        `begin\n  if p_timezone in ('America/Denver', 'Asia/Tokyo', 'Australia/Lord_Howe') then return false; end if;\n`,
      ),
    );
    t.teardown(() => owner.query(source));
    for (const { path, send } of Object.values(PLACES)) {
      refused(t, await send('America/Denver'), path, /database .*; use America\/Boise instead$/);
      refused(t, await send('Asia/Tokyo'), path, /database .*; use Etc\/GMT-9 instead$/);
      refused(t, await send('Australia/Lord_Howe'), path, /database .*than the service$/);
    }
  },
);
