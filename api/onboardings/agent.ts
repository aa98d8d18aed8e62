import { Problem } from '../../engine/db/problem.ts';
import { organizationId } from '../fields/ids.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { digests, ids } from '../http/openapi/example_values.ts';
import { researchBody, researchForChat, researchSchema } from './research.ts';

/** Calls that read the web at once in one process: each may take half a minute. */
const AT_ONCE = 4;

/** Research on demand. */
export function agentOnboardingEndpoints(): readonly Endpoint[] {
  let running = 0;
  return [
    endpoint({
      method: 'post',
      path: '/internal/agent/organizations/{organizationId}/onboarding/research',
      audience: 'agent',
      tag: 'Agent tools',
      operationId: 'researchOnboarding',
      summary: 'Research pages for an onboarding',
      description: [
        'For the enabled chat profile during a turn in the onboarding chat, until the onboarding is completed; anything else, the service token included, is 401.',
        'Reads up to five public pages, respecting robots.txt and blocked domains, and retains them as immutable evidence; a page that was read before stays the same source. If a model is configured (`RESEARCH_LLM_URL`), it derives findings from these pages or, with a `question`, from all evidence; without a model, the findings are what the pages say about themselves. Claims without evidence are left out. In `review` the review is computed again.',
        'A call takes up to 30 seconds. Pages or models that fail are reported in the response. 503 while too many other calls are running.',
      ].join('\n\n'),
      params: { organizationId },
      body: researchBody,
      response: { data: researchSchema },
      example: {
        body: { urls: ['https://lampstudio.example/prices'], question: 'What does the smallest lamp cost?' },
        data: {
          evidence: [
            {
              sourceId: ids.source,
              url: 'https://lampstudio.example/prices',
              title: 'Prices',
              text: 'Prices\nDesk lamp Mini: 49 €.',
              truncated: false,
            },
          ],
          findings: [
            {
              claim: 'The smallest lamp costs 49 €.',
              evidence: [ids.source],
            },
          ],
          failures: [],
          warnings: [],
          status: 'review',
          generation: 7,
          reviewSha256: digests.review,
        },
      },
      external: true,
      costly: true,
      async handler({ db, services, params, body, caller, signal, commit }) {
        if (running >= AT_ONCE) {
          const wait = { 'Retry-After': '5' };
          throw new Problem(503, 'service_unavailable', 'Too much is being researched. Try again.', undefined, wait);
        }
        running += 1;
        try {
          const { storage, config } = services;
          return await researchForChat({
            db,
            commit,
            storage,
            config,
            organizationId: params.organizationId,
            caller,
            body,
            signal,
          });
        } finally {
          running -= 1;
        }
      },
    }),
  ];
}
