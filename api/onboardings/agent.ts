import { Problem } from '../../engine/db/problem.ts';
import { organizationId } from '../fields/ids.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { researchBody, researchForChat, researchSchema } from './research.ts';

/** Calls that read the web at once in one process: each may take half a minute, and a connection when it has a key. */
const AT_ONCE = 4;

/** Contract 4.12: research on demand. */
export function agentOnboardingEndpoints(): readonly Endpoint[] {
  let running = 0;
  return [
    endpoint({
      method: 'post',
      path: '/internal/agent/organizations/{organizationId}/onboarding/research',
      audience: 'agent',
      tag: 'Agent tools',
      operationId: 'researchOnboarding',
      summary: 'Read pages for the onboarding, and ask what the evidence says',
      description:
        'For the enabled chat profile while it answers in the onboarding chat, until the completion; everything else is 401, the service token too. The pages at `urls` (at most five, any public address that is no blocked domain, robots.txt respected) are read and kept as immutable evidence; the same page again is the same source. With a model set up (`RESEARCH_LLM_URL`) it says what they and, with a `question`, all evidence tell; without one the findings are what the pages say about themselves. A claim that names no evidence is left out. In review the review is computed anew. Takes up to half a minute; a page or a model that fails is told in the answer. 503 while too many others research.',
      params: { organizationId },
      body: researchBody,
      response: { data: researchSchema },
      example: {
        body: { urls: ['https://north-light.example/prices'], question: 'What does the smallest plan cost?' },
        data: {
          evidence: [
            {
              sourceId: '0192f7a0-1111-7000-8000-000000000001',
              url: 'https://north-light.example/prices',
              title: 'Prices',
              text: 'Prices\nSmall: 9 € a month.',
              truncated: false,
            },
          ],
          findings: [
            {
              claim: 'The smallest plan costs 9 € a month.',
              evidence: ['0192f7a0-1111-7000-8000-000000000001'],
            },
          ],
          failures: [],
          warnings: [],
          status: 'review',
          generation: 7,
          reviewSha256: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
        },
      },
      async handler({ db, services, params, body, caller, signal }) {
        if (running >= AT_ONCE) {
          const wait = { 'Retry-After': '5' };
          throw new Problem(503, 'service_unavailable', 'Too much is being researched. Try again.', undefined, wait);
        }
        running += 1;
        try {
          const { storage, config } = services;
          return await researchForChat({
            db,
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
