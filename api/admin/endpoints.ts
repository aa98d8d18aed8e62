import { text } from 'node:stream/consumers';
import { z } from 'zod';
import { createThrottle, logThrottled } from '../../engine/log.ts';
import { SESSION_PATH } from '../http/auth/admin_session.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { requestState } from '../http/request_state.ts';
import { sendAsset, showExplorer, signIn, signOut } from './explorer.ts';

const requestBody = z
  .strictObject({
    query: z
      .string()
      .min(1)
      .describe(
        'At most 20,000 characters, 12 levels, 10,000 rows and 500,000 values. A JSON document counts as nine further rows.',
      ),
    operationName: z.string().max(200).nullish(),
    variables: z.record(z.string(), z.unknown()).nullish(),
    extensions: z.record(z.string(), z.unknown()).nullish().describe('Accepted, and ignored.'),
  })
  .meta({ id: 'GraphqlRequest' });

const graphqlResponse = z
  .looseObject({
    data: z.record(z.string(), z.unknown()).nullish(),
    errors: z
      .array(z.looseObject({ message: z.string(), extensions: z.looseObject({ code: z.string() }).optional() }))
      .optional(),
  })
  .meta({ id: 'GraphqlResponse', example: {} });

/** The administration's GraphQL, described by its name alone: the schema describes itself. */
export function adminEndpoints(): readonly Endpoint[] {
  const throttle = createThrottle();
  return [
    endpoint({
      method: 'post',
      path: `${SESSION_PATH}/graphql`,
      audience: 'admin',
      tag: 'Administration',
      operationId: 'postAdminGraphql',
      summary: 'Run a GraphQL query or mutation',
      description: [
        'Queries and mutations of administrators, over all organizations or over one. The schema describes itself; `/internal/admin` is an explorer for it. One operation per request.',
        'A query that is invalid or exceeds the limits is 400 with GraphQL `errors`, which carry a code and the request id in `extensions`. A page has 50 rows by default and at most 100. A response has at most 16 MiB; a longer one is replaced by an error with the code `too_large`. A request that takes longer than 30 seconds, or waits too long for its turn, is 503.',
        'Without `X-Organization-Id`, lists at the root can only be sorted by columns that have an index over all organizations, and run requests cannot be filtered by state.',
      ].join('\n\n'),
      headers: { 'x-organization-id': z.guid().optional().describe('Restricts everything to this organization.') },
      body: requestBody,
      response: {
        stream: true,
        mediaType: 'application/json',
        description: 'The GraphQL response.',
        schema: graphqlResponse,
      },
      example: {
        body: { query: '{ organizations(first: 10) { nodes { slug status } } }' },
        data: { data: { organizations: { nodes: [{ slug: 'lamp-studio', status: 'active' }] } } },
      },
      async handler({ services, caller, headers, body, req, res, log, signal }) {
        const { requestId } = requestState(req);
        const organizationId = headers['x-organization-id']?.toLowerCase() ?? null;
        const { status, body: response } = await services.admin.run(
          { query: body.query, operationName: body.operationName ?? undefined, variables: body.variables ?? {} },
          { admin: caller.name, organizationId, requestId },
          (error, code) => {
            if (code === 503) logThrottled(log, throttle, 'a dependency is unavailable', error);
            else log.error({ err: error }, 'a request of the administration failed');
          },
          signal,
        );
        res.status(status).set('Cache-Control', 'no-store').type('json').end(JSON.stringify(response));
      },
    }),
  ];
}

/** The explorer: pages for a browser, which belong to no interface. */
export function explorerEndpoints(): readonly Endpoint[] {
  const shared = { audience: 'public', tag: 'Administration' } as const;
  const foreign = { status: 403, code: 'forbidden', when: 'another web site sends the form' } as const;
  const html = { stream: true, mediaType: 'text/html', description: 'A page.' } as const;
  return [
    endpoint({
      ...shared,
      method: 'get',
      path: SESSION_PATH,
      operationId: 'getAdminExplorer',
      summary: 'Explorer of the administration, or the way to sign in',
      response: html,
      handler: ({ services, req, res }) => showExplorer(services.config, req, res),
    }),
    endpoint({
      ...shared,
      method: 'post',
      path: `${SESSION_PATH}/sign-in`,
      operationId: 'signInToAdminExplorer',
      summary: 'Sign in to the explorer',
      body: { stream: true, mediaTypes: ['application/x-www-form-urlencoded'], maxBytes: 8_192 },
      response: html,
      errors: [foreign],
      async handler({ services, req, res, openBody }) {
        signIn(services.config, req, res, await text(openBody()));
      },
    }),
    endpoint({
      ...shared,
      method: 'post',
      path: `${SESSION_PATH}/sign-out`,
      operationId: 'signOutOfAdminExplorer',
      summary: 'Sign out of the explorer',
      body: { stream: true, mediaTypes: ['application/x-www-form-urlencoded'], maxBytes: 8_192 },
      response: html,
      errors: [foreign],
      async handler({ req, res, openBody }) {
        await text(openBody());
        signOut(req, res);
      },
    }),
    endpoint({
      ...shared,
      method: 'get',
      path: `${SESSION_PATH}/assets/{file}`,
      operationId: 'getAdminExplorerFile',
      summary: 'The files of that page',
      params: { file: z.string().regex(/^[\w.-]{1,200}$/) },
      response: { stream: true, mediaType: 'application/octet-stream', description: 'A file of Ruru.' },
      errors: [{ status: 404, code: 'not_found', when: 'there is no such file' }],
      handler: ({ params, req, res }) => sendAsset(req, res, params.file),
    }),
  ];
}
