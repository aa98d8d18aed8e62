import { z } from 'zod';
import { call } from '../../engine/db/call.ts';
import { organizationId } from '../fields/ids.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { pageQuery } from '../http/pagination.ts';
import { getMember, listMembers } from './list.ts';
import { MEMBER_ROLES, memberExample, memberResult, memberSchema, subject } from './schema.ts';

const params = { organizationId, sub: subject };
const notFound = { status: 404, code: 'not_found', when: 'the organization has no member with this subject' } as const;
const lastOwner = { status: 409, code: 'state_conflict', when: 'it is the last owner of the organization' } as const;

/** Who may do what in an organization when owners come with JWTs. */
export function organizationMemberEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      method: 'get',
      path: '/organizations/{organizationId}/members',
      audience: 'owner',
      tag: 'Organizations',
      operationId: 'listMembers',
      summary: 'List members',
      description:
        'Sorted by subject. Members matter with `OWNER_AUTH=jwt` only; platform operators need not be members.',
      params: { organizationId },
      query: pageQuery(),
      response: { data: z.array(memberSchema), list: true },
      example: { data: [memberExample] },
      handler: ({ db, params, query }) => listMembers(db, params.organizationId, query),
    }),
    endpoint({
      method: 'get',
      path: '/organizations/{organizationId}/members/{sub}',
      audience: 'owner',
      tag: 'Organizations',
      operationId: 'getMember',
      summary: 'Get a member',
      description: 'The role of one person in the organization.',
      params,
      response: { data: memberSchema },
      errors: [notFound],
      example: { data: memberExample },
      handler: ({ db, params }) => getMember(db, params.organizationId, params.sub),
    }),
    endpoint({
      method: 'put',
      path: '/organizations/{organizationId}/members/{sub}',
      audience: 'owner',
      tag: 'Organizations',
      operationId: 'putMember',
      summary: 'Add a member or change its role',
      description: 'The last owner of an organization cannot become a viewer.',
      params,
      body: z.strictObject({ role: z.enum(MEMBER_ROLES) }).meta({ id: 'MemberRole' }),
      response: { data: memberSchema },
      errors: [lastOwner],
      example: { body: { role: 'viewer' }, data: memberExample },
      decision: { action: 'member.put', subject: 'member', id: ['member', 'subject'] },
      async handler({ db, params, body, decision }) {
        const args = { organizationId: params.organizationId, subject: params.sub, role: body.role };
        return (await call(db, 'organization_member_put', args, memberResult, decision)).member;
      },
    }),
    endpoint({
      method: 'delete',
      path: '/organizations/{organizationId}/members/{sub}',
      audience: 'owner',
      tag: 'Organizations',
      operationId: 'deleteMember',
      summary: 'Remove a member',
      description: 'Returns the member as it was. The last owner of an organization cannot be removed.',
      params,
      response: { data: memberSchema },
      errors: [notFound, lastOwner],
      example: { data: memberExample },
      decision: { action: 'member.delete', subject: 'member', id: ['member', 'subject'] },
      async handler({ db, params, decision }) {
        const args = { organizationId: params.organizationId, subject: params.sub };
        return (await call(db, 'organization_member_delete', args, memberResult, decision)).member;
      },
    }),
  ];
}
