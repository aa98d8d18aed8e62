import { call } from '../../engine/db/call.ts';
import type { Json } from '../../engine/db/sql_types.ts';
import { slugOf } from '../../engine/onboarding/index.ts';
import { organizationId } from '../fields/ids.ts';
import { requireTimeZone } from '../fields/time_zone.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { digests } from '../http/openapi/example_values.ts';
import { DEPARTMENTS } from '../organizations/schema.ts';
import {
  completionBody,
  dispositionBody,
  integrationKey,
  newOnboardingSchema,
  researchRetryBody,
  setupPatchSchema,
} from './changes.ts';
import { common, missing, notPermitted } from './errors.ts';
import { deleteStored, storeReviewed } from './files.ts';
import { plannedIntegrations } from './integrations.ts';
import { onboardingExample, onboardingResult, onboardingSchema, removalResult } from './schema.ts';

const noCatalog = {
  status: 503,
  code: 'request_failed',
  when: 'no template catalog is published, or the database cannot be reached',
} as const;

/** The onboarding, without its sources. */
export function onboardingEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      ...common,
      method: 'post',
      path: '/organization-onboardings',
      operationId: 'createOnboarding',
      summary: 'Start onboarding an organization',
      description: [
        'Creates the organization together with its onboarding. There are two bodies: `name`, `slug`, `timezone` and `departments`, all required; or `name` with optional `website`, `timezone` and `defaultCurrency`. With the second one the slug is derived from the name, with a number appended if it is in use, and every department is enabled.',
        'Until the onboarding is completed, the organization has the status `onboarding`, which holds its work dispatch: tasks wait, while chat turns are run. With `OWNER_AUTH=jwt` the caller becomes the owner.',
      ].join('\n\n'),
      body: newOnboardingSchema,
      response: { status: 201, data: onboardingSchema },
      errors: [{ status: 409, code: 'request_failed', when: 'the slug is in use' }],
      example: { body: { name: 'Lamp Studio', website: 'https://lampstudio.example/' }, data: onboardingExample },
      decision: { action: 'onboarding.create', subject: 'onboarding', id: ['onboarding', 'organization_id'] },
      async handler({ db, body, caller, decision }) {
        await requireTimeZone(db, 'timezone', body.timezone);
        const made =
          'slug' in body ? body : { timezone: 'UTC', ...body, departments: DEPARTMENTS, slugBase: slugOf(body.name) };
        const args = { fields: made, subject: caller.subject };
        return (await call(db, 'onboarding_create', args, onboardingResult, decision)).onboarding;
      },
    }),
    endpoint({
      ...common,
      method: 'get',
      path: '/organizations/{organizationId}/onboarding',
      operationId: 'getOnboarding',
      summary: 'Get an onboarding',
      description: 'With its setup, sources, research and review, also after it is completed.',
      params: { organizationId },
      response: { data: onboardingSchema },
      errors: [missing],
      example: { data: onboardingExample },
      async handler({ db, params }) {
        const args = { organizationId: params.organizationId };
        return (await call(db, 'onboarding_read', args, onboardingResult)).onboarding;
      },
    }),
    endpoint({
      ...common,
      method: 'delete',
      path: '/organizations/{organizationId}/onboarding',
      operationId: 'discardOnboarding',
      summary: 'Discard an onboarding',
      description:
        'Deletes the organization with everything in it. Possible until the onboarding is completed. Returns the last state of the onboarding; a repeated call is 404.',
      params: { organizationId },
      response: { data: onboardingSchema },
      errors: [missing, notPermitted],
      example: { data: onboardingExample },
      decision: { action: 'onboarding.discard', subject: 'onboarding' },
      async handler({ db, params, decision }) {
        const args = { organizationId: params.organizationId };
        return (await call(db, 'onboarding_discard', args, onboardingResult, decision)).onboarding;
      },
    }),
    endpoint({
      ...common,
      method: 'patch',
      path: '/organizations/{organizationId}/onboarding/setup',
      operationId: 'updateOnboardingSetup',
      summary: 'Change the setup of an onboarding',
      description:
        'A changed name, time zone or list of departments changes the organization immediately. In `review` the review is computed again. A changed website discards what was read of the old one and returns the onboarding to `collecting`. Not possible while the research runs.',
      params: { organizationId },
      body: setupPatchSchema,
      response: { data: onboardingSchema },
      errors: [missing, notPermitted],
      example: {
        body: { expectedGeneration: 1, summary: 'Desk and floor lamps, made to order' },
        data: onboardingExample,
      },
      decision: { action: 'onboarding.setup', subject: 'onboarding' },
      async handler({ db, services, log, params, body: { expectedGeneration, ...patch }, decision }) {
        await requireTimeZone(db, 'timezone', patch.timezone);
        const args = {
          organizationId: params.organizationId,
          expectedGeneration,
          patch,
        };
        const { onboarding, removedKeys } = await call(db, 'onboarding_setup_update', args, removalResult, decision);
        await deleteStored(services.storage, removedKeys, log);
        return onboarding;
      },
    }),
    endpoint({
      ...common,
      method: 'put',
      path: '/organizations/{organizationId}/onboarding/integrations/{integrationKey}/disposition',
      operationId: 'putOnboardingDisposition',
      summary: 'Decide about an integration',
      description:
        'Replaces an earlier decision about the same key. An integration that stays `unknown` is a warning in the review.',
      params: { organizationId, integrationKey },
      body: dispositionBody,
      response: { data: onboardingSchema },
      errors: [missing, notPermitted],
      example: {
        body: { expectedGeneration: 1, disposition: 'connect_later', departments: ['growth'] },
        data: onboardingExample,
      },
      decision: { action: 'onboarding.disposition', subject: 'onboarding' },
      async handler({ db, params, body, decision }) {
        const args = {
          organizationId: params.organizationId,
          expectedGeneration: body.expectedGeneration,
          integrationKey: params.integrationKey,
          disposition: body.disposition,
          departments: body.departments,
        };
        return (await call(db, 'onboarding_disposition_put', args, onboardingResult, decision)).onboarding;
      },
    }),
    endpoint({
      ...common,
      method: 'post',
      path: '/organizations/{organizationId}/onboarding/start',
      operationId: 'startOnboarding',
      summary: 'Start the research of an onboarding',
      description:
        'Enables the chat profile of the current template catalog, creates the onboarding chat and queues the research of the website, which ends in `review` or `research_failed`. After a failed research the call starts it again.',
      params: { organizationId },
      response: { data: onboardingSchema },
      errors: [
        missing,
        notPermitted,
        { status: 409, code: 'request_failed', when: 'a profile created by hand has the key of the chat profile' },
        noCatalog,
      ],
      example: { data: onboardingExample },
      decision: { action: 'onboarding.start', subject: 'onboarding' },
      async handler({ db, params, decision }) {
        const args = { organizationId: params.organizationId };
        const { onboarding } = await call(db, 'onboarding_start', args, onboardingResult, decision);
        return onboarding;
      },
    }),
    endpoint({
      ...common,
      method: 'post',
      path: '/organizations/{organizationId}/onboarding/public-research/retry',
      operationId: 'retryOnboardingResearch',
      summary: 'Retry a failed research',
      description: 'Pages that were read before are reused.',
      params: { organizationId },
      body: researchRetryBody,
      response: { status: 202, data: onboardingSchema },
      errors: [missing, notPermitted],
      example: {
        body: { expectedGeneration: 3 },
        data: onboardingExample,
      },
      decision: { action: 'onboarding.retry', subject: 'onboarding' },
      async handler({ db, params, body, decision }) {
        const args = { organizationId: params.organizationId, expectedGeneration: body.expectedGeneration };
        return (await call(db, 'onboarding_research_retry', args, onboardingResult, decision)).onboarding;
      },
    }),
    endpoint({
      ...common,
      method: 'post',
      path: '/organizations/{organizationId}/onboarding/complete',
      operationId: 'completeOnboarding',
      summary: 'Complete an onboarding',
      description:
        'Confirms the review by its digest. In one transaction the agent profiles are provisioned, the first context revisions are published (facts from setup, integrations and findings; notes from each source, in the scope of its department), the organization becomes `active`, which lets its tasks be dispatched unless an owner has stopped that, integrations that are to be connected are created where they are missing and their key is that of a provider, and the onboarding chat is closed for messages. Before that, the stored bytes of all sources are verified: a damaged source fails, and the review is computed again.',
      params: { organizationId },
      body: completionBody,
      response: { data: onboardingSchema },
      errors: [
        missing,
        {
          status: 409,
          code: 'request_failed',
          when: '`issues[0].code` is `not_permitted` (not in this status), `stale` (the review has changed, for example because a source is damaged), `has_warnings` (send `allowWarnings`), `reply_active` (in the onboarding chat), `being_read` (sources are still being read), `suspended` (the organization) or `key_held` (a profile created by hand has the key of a template)',
        },
        noCatalog,
      ],
      example: {
        body: { reviewSha256: digests.review },
        data: onboardingExample,
      },
      decision: { action: 'onboarding.complete', subject: 'onboarding' },
      external: true,
      costly: true,
      async handler({ db, services, params: { organizationId }, body, signal, decision, commit }) {
        const complete = (
          on: typeof db,
          made: Readonly<{ documents: Json | null; providers?: Json }>,
          confirmed?: typeof decision,
        ) => call(on, 'onboarding_complete', { organizationId, ...body, ...made }, onboardingResult, confirmed);
        const seen = (await complete(db, { documents: null })).onboarding;
        const documents = await storeReviewed(db, services.storage, seen, signal);
        const made = { documents, providers: plannedIntegrations(seen) };
        return commit(async (on) => (await complete(on, made, decision)).onboarding);
      },
    }),
  ];
}
