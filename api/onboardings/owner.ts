import { call } from '../../engine/db/call.ts';
import type { Json } from '../../engine/db/sql_types.ts';
import { slugOf } from '../../engine/onboarding/index.ts';
import { organizationId } from '../fields/ids.ts';
import { requireTimeZone } from '../fields/time_zone.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { DEPARTMENTS } from '../organizations/schema.ts';
import { PULL_CHANNEL } from '../run_requests/pull_broker.ts';
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
import { onboardingAnswer, onboardingExample, onboardingSchema, removalAnswer } from './schema.ts';

const noCatalog = {
  status: 503,
  code: 'request_failed',
  when: 'no template catalog is published, or the database cannot be reached',
} as const;
const sha256 = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08';
const reviewed = {
  ...onboardingExample,
  status: 'review',
  generation: 4,
  review: {
    sha256,
    warnings: [],
    summary: { setup: onboardingExample.setup, integrations: [], sources: [], evidence: [], findings: [] },
  },
};

/** Contract 4.1, without the sources; the states are those of design/decisions.md 9. */
export function onboardingEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      ...common,
      method: 'post',
      path: '/organization-onboardings',
      operationId: 'createOnboarding',
      summary: 'Create an organization by onboarding it',
      description:
        'Two bodies: name, slug, timezone and departments, all required; or name with website, timezone and defaultCurrency, where the slug follows from the name (with a number behind it when it is taken, `org-` and digits when the name leaves nothing) and every department is enabled. The organization is `onboarding` until the completion, and its work dispatch is stopped: tasks wait, unless `PATCH /organizations/{organizationId}/work-dispatch` resumes it before, and then run without the profiles and the context that the completion brings; chat turns run. With JWTs the caller becomes its owner.',
      body: newOnboardingSchema,
      response: { status: 201, data: onboardingSchema },
      errors: [{ status: 409, code: 'request_failed', when: 'the slug is in use' }],
      example: { body: { name: 'North Light Ltd', website: 'https://north-light.example/' }, data: onboardingExample },
      decision: { action: 'onboarding.create', subject: 'onboarding', id: ['onboarding', 'organization_id'] },
      async handler({ db, body, caller, decision }) {
        await requireTimeZone(db, 'timezone', body.timezone);
        const made =
          'slug' in body ? body : { timezone: 'UTC', ...body, departments: DEPARTMENTS, slugBase: slugOf(body.name) };
        const args = { fields: made, subject: caller.subject };
        return (await call(db, 'onboarding_create', args, onboardingAnswer, decision)).onboarding;
      },
    }),
    endpoint({
      ...common,
      method: 'get',
      path: '/organizations/{organizationId}/onboarding',
      operationId: 'getOnboarding',
      summary: 'Get the state of an onboarding',
      params: { organizationId },
      response: { data: onboardingSchema },
      errors: [missing],
      example: { data: onboardingExample },
      async handler({ db, params }) {
        const args = { organizationId: params.organizationId };
        return (await call(db, 'onboarding_read', args, onboardingAnswer)).onboarding;
      },
    }),
    endpoint({
      ...common,
      method: 'delete',
      path: '/organizations/{organizationId}/onboarding',
      operationId: 'discardOnboarding',
      summary: 'Discard an onboarding that is not completed',
      description:
        'The organization goes with all that it has. Answers the onboarding as it was left; a repeat is 404.',
      params: { organizationId },
      response: { data: onboardingSchema },
      errors: [missing, notPermitted],
      example: { data: { ...onboardingExample, status: 'discarded', generation: 2 } },
      decision: { action: 'onboarding.discard', subject: 'onboarding' },
      async handler({ db, params, decision }) {
        const args = { organizationId: params.organizationId };
        return (await call(db, 'onboarding_discard', args, onboardingAnswer, decision)).onboarding;
      },
    }),
    endpoint({
      ...common,
      method: 'patch',
      path: '/organizations/{organizationId}/onboarding/setup',
      operationId: 'updateOnboardingSetup',
      summary: 'Change the setup of an onboarding',
      description:
        'Name, time zone and departments are the organization’s at once. In review a change makes a new review; another website leads back to `collecting` and takes away what was read of the old one. Not while the research runs.',
      params: { organizationId },
      body: setupPatchSchema,
      response: { data: onboardingSchema },
      errors: [missing, notPermitted],
      example: {
        body: { expectedGeneration: 1, summary: 'Lamps, made to order' },
        data: {
          ...onboardingExample,
          generation: 2,
          setup: { ...onboardingExample.setup, summary: 'Lamps, made to order' },
        },
      },
      decision: { action: 'onboarding.setup', subject: 'onboarding' },
      async handler({ db, services, log, params, body: { expectedGeneration, ...patch }, decision }) {
        await requireTimeZone(db, 'timezone', patch.timezone);
        const args = {
          organizationId: params.organizationId,
          expectedGeneration,
          patch,
        };
        const { onboarding, removedKeys } = await call(db, 'onboarding_setup_update', args, removalAnswer, decision);
        await deleteStored(services.storage, removedKeys, log);
        return onboarding;
      },
    }),
    endpoint({
      ...common,
      method: 'put',
      path: '/organizations/{organizationId}/onboarding/integrations/{integrationKey}/disposition',
      operationId: 'putOnboardingDisposition',
      summary: 'Decide what is to become of an integration',
      description: 'The last word about a key counts; one that stays `unknown` is a warning of the review.',
      params: { organizationId, integrationKey },
      body: dispositionBody,
      response: { data: onboardingSchema },
      errors: [missing, notPermitted],
      example: {
        body: { expectedGeneration: 1, disposition: 'connect_later', departments: ['growth'] },
        data: {
          ...onboardingExample,
          generation: 2,
          integrations: [{ integrationKey: 'crm', disposition: 'connect_later', departments: ['growth'] }],
        },
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
        return (await call(db, 'onboarding_disposition_put', args, onboardingAnswer, decision)).onboarding;
      },
    }),
    endpoint({
      ...common,
      method: 'post',
      path: '/organizations/{organizationId}/onboarding/start',
      operationId: 'startOnboarding',
      summary: 'Start the research',
      description:
        'Enables the chat profile of the current catalog, opens the onboarding chat (once) and queues the research of the website, which ends in `review` or `research_failed`. After a failed research it starts again, as a retry does.',
      params: { organizationId },
      response: { data: onboardingSchema },
      errors: [
        missing,
        notPermitted,
        { status: 409, code: 'request_failed', when: 'a profile made by hand holds the key of the chat profile' },
        noCatalog,
      ],
      example: { data: { ...onboardingExample, status: 'researching', generation: 2 } },
      decision: { action: 'onboarding.start', subject: 'onboarding' },
      async handler({ db, params, notify, decision }) {
        const args = { organizationId: params.organizationId };
        const { onboarding } = await call(db, 'onboarding_start', args, onboardingAnswer, decision);
        notify(PULL_CHANNEL);
        return onboarding;
      },
    }),
    endpoint({
      ...common,
      method: 'post',
      path: '/organizations/{organizationId}/onboarding/public-research/retry',
      operationId: 'retryOnboardingResearch',
      summary: 'Try a failed research once more',
      description: 'What was read before is found again and not kept twice.',
      params: { organizationId },
      body: researchRetryBody,
      response: { status: 202, data: onboardingSchema },
      errors: [missing, notPermitted],
      example: {
        body: { expectedGeneration: 3 },
        data: { ...onboardingExample, status: 'researching', generation: 4 },
      },
      decision: { action: 'onboarding.retry', subject: 'onboarding' },
      async handler({ db, params, body, decision }) {
        const args = { organizationId: params.organizationId, expectedGeneration: body.expectedGeneration };
        return (await call(db, 'onboarding_research_retry', args, onboardingAnswer, decision)).onboarding;
      },
    }),
    endpoint({
      ...common,
      method: 'post',
      path: '/organizations/{organizationId}/onboarding/complete',
      operationId: 'completeOnboarding',
      summary: 'Complete an onboarding',
      description:
        'Confirms the review by its sha256. In one step the profiles are provisioned, the first context revision is published (facts of setup, integrations and findings; notes of what each source says, in the scope that it was given for), the organization is active and its work dispatch resumed, and the onboarding chat takes no more messages. Before that the stored bytes of all sources are read: those that are broken have failed, and the review is computed anew.',
      params: { organizationId },
      body: completionBody,
      response: { data: onboardingSchema },
      errors: [
        missing,
        {
          status: 409,
          code: 'request_failed',
          when: 'the state does not permit it, or `issues[0].code` says why: `stale` (another review by now; also when a stored source is found broken, which is a warning of the new review), `has_warnings` (send allowWarnings), `answer_active` (in the onboarding chat), `being_read` (sources), `suspended`, `key_held`',
        },
        noCatalog,
      ],
      example: {
        body: { reviewSha256: sha256 },
        data: { ...reviewed, status: 'completed', generation: 5 },
      },
      decision: { action: 'onboarding.complete', subject: 'onboarding' },
      async handler({ db, services, params: { organizationId }, body, signal, notify, decision }) {
        const complete = (documents: Json | null, confirmed?: typeof decision) =>
          call(
            db,
            'onboarding_complete',
            {
              organizationId,
              reviewSha256: body.reviewSha256,
              allowWarnings: body.allowWarnings,
              documents,
            },
            onboardingAnswer,
            confirmed,
          );
        const seen = (await complete(null)).onboarding;
        const documents = await storeReviewed(db, services.storage, seen, signal);
        const { onboarding } = await complete(documents, decision);
        notify(PULL_CHANNEL);
        return onboarding;
      },
    }),
  ];
}
