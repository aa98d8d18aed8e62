import { PassThrough, type Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { z } from 'zod';
import { call } from '../../engine/db/call.ts';
import { Problem } from '../../engine/db/problem.ts';
import {
  openAdvertisement,
  openUploadPack,
  PktLineError,
  proposedSchema,
  pushAdvertisement,
  receivePack,
} from '../../engine/git/index.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { retryTransient } from '../http/errors.ts';
import { checkGit, explain, sendGit, withRepository } from './repository.ts';

const BASE = '/internal/git/integrations/{integrationId}/{owner}/{repository}';
const MAX_FETCH_BYTES = 32 * 1024 * 1024;
/** The bound is a setting, which the handler keeps. */
const LARGEST_PUSH_BYTES = 10 * 1024 * 1024 * 1024;

const params = {
  integrationId: z.uuid().describe('That of the capability.'),
  // Whether the settings name it is asked later: any other one is not there.
  owner: z
    .string()
    .regex(/^[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})$/)
    .describe('As in the settings.'),
  repository: z
    .string()
    .regex(/^[A-Za-z0-9_.-]{1,100}$/)
    .describe('One of the settings. `.git` may follow.'),
};
const headers = {
  'git-protocol': z
    .string()
    .regex(/^[a-z0-9=:.-]{1,100}$/)
    .optional()
    .describe('As git sends it, `version=2`.'),
};
const encoding = { 'content-encoding': z.string().max(100).optional().describe('`gzip`, or none.') };

const errors = [
  { status: 404, code: 'not_found', when: 'the settings of the integration name no such repository' },
  { status: 502, code: 'provider_failed', when: 'the provider refuses the request, or does not see the repository' },
  { status: 503, code: 'provider_unavailable', when: 'the provider does not respond, or limits requests' },
] as const;

/** The bytes of a push: decoded, and not more than are taken. */
function pushBody(source: Readable, contentEncoding: string | undefined, maxBytes: number): Readable {
  let size = 0;
  const bounded = new PassThrough({
    transform(chunk: Buffer, _encoding, done) {
      size += chunk.length;
      const message = `The push is larger than the ${maxBytes} bytes that are taken.`;
      if (size > maxBytes) done(new Problem(413, 'payload_too_large', message));
      else done(null, chunk);
    },
  });
  const isPlain = contentEncoding === undefined || contentEncoding.toLowerCase() === 'identity';
  const decoded = isPlain ? source : source.pipe(createGunzip());
  decoded.pipe(bounded);
  for (const stream of new Set([source, decoded])) stream.once('error', (error) => bounded.destroy(broken(error)));
  // It may fail while nobody reads it yet: its reader gets the error all the same.
  bounded.on('error', () => {});
  bounded.once('close', () => source.destroy());
  return bounded;
}

const broken = (error: Error) =>
  'code' in error && String(error.code).startsWith('Z_') ? new PktLineError('is not what its encoding says') : error;

/** Repositories of integrations, for git: fetches are the provider's own, pushes become actions. */
export function gitEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      method: 'get',
      path: `${BASE}/info/refs`,
      audience: 'gateway',
      byPassword: true,
      tag: 'Gateway',
      // Git shows what is plain text as `remote: …`; of another type it says the status alone.
      textFor: /^git\//,
      operationId: 'discoverRepository',
      summary: 'Discover refs of a repository',
      description:
        'Smart HTTP: git clones this URL, with the capability as the password of any name. For task runs of engineering that do not verify, with `git.read`. Refusals are text for git, which shows it.',
      params,
      query: { service: z.enum(['git-upload-pack', 'git-receive-pack']).describe('Fetch, or push.') },
      headers,
      response: {
        stream: true,
        mediaType: 'application/x-git-upload-pack-advertisement',
        description: 'Refs as the provider offers them.',
      },
      errors,
      async handler({ services, caller, params: place, query, headers: given, res, signal }) {
        const at = { services, caller, params: place, signal };
        const { service } = query;
        const isFetch = service === 'git-upload-pack';
        await withRepository(at, await checkGit(at), async (remote) => {
          const request = { signal, protocol: isFetch ? given['git-protocol'] : undefined };
          const { body } = await openAdvertisement(remote, service, request);
          const bytes = isFetch ? body : pushAdvertisement(body, remote.connection.provider.key);
          await sendGit(res, `application/x-${service}-advertisement`, bytes, signal);
        });
      },
    }),
    endpoint({
      method: 'post',
      path: `${BASE}/git-upload-pack`,
      audience: 'gateway',
      byPassword: true,
      tag: 'Gateway',
      operationId: 'fetchFromRepository',
      summary: 'Fetch from a repository',
      description: 'What git asks for, and the provider’s response as it comes.',
      params,
      headers: { ...headers, ...encoding },
      body: {
        stream: true,
        mediaTypes: ['application/x-git-upload-pack-request'],
        encodings: ['gzip', 'x-gzip'],
        maxBytes: MAX_FETCH_BYTES,
      },
      response: {
        stream: true,
        mediaType: 'application/x-git-upload-pack-result',
        description: 'A pack, or what stands before it.',
      },
      errors,
      async handler({ services, caller, params: place, headers: given, res, signal, openBody }) {
        const at = { services, caller, params: place, signal };
        const access = await checkGit(at);
        const request = { signal, protocol: given['git-protocol'], encoding: given['content-encoding'] };
        const fetch = async (remote: Parameters<typeof openUploadPack>[0]) => {
          const { body } = await openUploadPack(remote, { ...request, body: openBody() });
          await sendGit(res, 'application/x-git-upload-pack-result', body, signal);
        };
        await withRepository(at, access, fetch, { once: true });
      },
    }),
    endpoint({
      method: 'post',
      path: `${BASE}/git-receive-pack`,
      audience: 'gateway',
      byPassword: true,
      tag: 'Gateway',
      operationId: 'pushToRepository',
      summary: 'Push to a repository',
      description:
        'Becomes one action: the report says `ng` with the action that is awaited, or with what is wrong, so that no branch of the client moves before the provider’s. For execute runs with `git.propose`, where access is full. At most 20 branches, all or none, forward alone; no tags, deletions or push options. The same push again has the same action.',
      params,
      headers: encoding,
      body: {
        stream: true,
        mediaTypes: ['application/x-git-receive-pack-request'],
        encodings: ['gzip', 'x-gzip'],
        maxBytes: LARGEST_PUSH_BYTES,
      },
      response: {
        stream: true,
        mediaType: 'application/x-git-receive-pack-result',
        description: 'The report: what became of each branch.',
      },
      errors: [
        ...errors,
        { status: 413, code: 'payload_too_large', when: 'the push is larger than `GIT_MAX_PUSH_BYTES`' },
      ],
      async handler({ db, services, caller, params: place, headers: given, res, signal, log, openBody }) {
        const at = { services, caller, params: place, signal };
        const access = await checkGit(at);
        const { organizationId, tokenHash } = caller;
        const approvalDays = services.config.actionApprovalDays;
        const asked = { organizationId, tokenHash, integrationId: place.integrationId, kind: 'git' };
        const chunks = receivePack(services.git, {
          body: pushBody(openBody(), given['content-encoding'], services.config.git.maxPushBytes),
          refusal: access.pushRefusal?.message ?? null,
          withRemote: (run) => withRepository(at, access, run, { once: true }),
          propose: (proposal) =>
            retryTransient(() => call(db, 'action_propose', { ...asked, proposal, approvalDays }, proposedSchema)),
          explain: (error) => explain(error, log),
          signal,
        });
        await sendGit(res, 'application/x-git-receive-pack-result', chunks, signal);
      },
    }),
  ];
}
