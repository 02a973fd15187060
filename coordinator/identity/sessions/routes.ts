// The routes of sign-in and sessions (spec §5).
import type { FastifyReply } from 'fastify'
import { z } from 'zod'
import {
  type CurrentSession,
  changeEmailRequestSchema,
  confirmCodeRequestSchema,
  createLinkRequestSchema,
  currentSessionSchema,
  issuedCodeSchema,
  ownerSignInRequestSchema,
  type SignedIn,
  sessionListSchema,
  signedInSchema,
  signInLinkSchema,
  signInRequestSchema,
  switchWorkspaceRequestSchema,
  updateUserRequestSchema,
  userResponseSchema,
} from '../../../shared/api/sessions.ts'
import { toTimestamp } from '../../../shared/clock.ts'
import { isId } from '../../../shared/ids.ts'
import { bySession } from '../../http/access.ts'
import { type Route, route, routeWithoutCredential } from '../../http/route.ts'
import { readClient } from './client.ts'
import { EXPIRED_SESSION_COOKIE, formatSessionCookie } from './cookie.ts'
import { presentSignedIn } from './present.ts'
import type { Sessions } from './sessions.ts'
import type { NewSession } from './start-session.ts'

const setCookieHeader = z.object({
  'Set-Cookie': z.string().meta({
    description:
      'the cookie __Host-boxwood_session, with HttpOnly, Secure, SameSite=Lax and Path=/. Send it as Cookie with requests of the session.',
    header: { id: 'Set-Cookie' },
  }),
})

/** Secrets and codes are not for caches. */
function sendSession(reply: FastifyReply, { session, token, user }: NewSession): SignedIn {
  reply.headers({ 'set-cookie': formatSessionCookie(token), 'cache-control': 'no-store' })
  return presentSignedIn(session, user)
}

const CODE_LIMITS =
  'A client gets 5 codes for an email address, then one every 5 minutes. All clients together get 30 in an hour. Then only a client with a session of the address gets one. A code is valid for 15 minutes and 5 attempts, and can be used once, also while further codes are refused.'

export const signInRoutes = ({ sessions: { signIn } }: { sessions: Sessions }): Route[] => [
  routeWithoutCredential({
    id: 'signIn.sendCode',
    method: 'POST',
    path: '/sign-in',
    summary: 'Send a sign-in code by email',
    description: `The response is the same whether or not the email address is known; only members get a code. ${CODE_LIMITS} Without an SMTP server the coordinator prints the code on its stdout.`,
    request: { body: signInRequestSchema },
    responses: { 202: issuedCodeSchema },
    errors: ['rate_limited'],
    handler: ({ body, request }) => signIn.requestCode(body.email, readClient(request)),
  }),
  routeWithoutCredential({
    id: 'signIn.confirm',
    method: 'POST',
    path: '/sign-in/confirm',
    summary: 'Sign in with a code',
    description:
      'Starts a session in the workspace that the person has used last. A session whose cookie comes with the request is ended.',
    request: { body: confirmCodeRequestSchema },
    responses: { 200: signedInSchema },
    responseHeaders: setCookieHeader,
    errors: ['invalid_code', 'rate_limited'],
    handler: async ({ body, request, reply }) =>
      sendSession(reply, await signIn.confirm(body, readClient(request))),
  }),
  routeWithoutCredential({
    id: 'signIn.owner',
    method: 'POST',
    path: '/sign-in/owner',
    summary: "Sign in as the owner on the coordinator's machine",
    description:
      'Signs in the first owner of the first workspace, with the secret in the file sign-in.key of the data directory, or with that of a link. Each start of the coordinator writes a new secret, and voids the links.',
    request: { body: ownerSignInRequestSchema },
    responses: { 200: signedInSchema },
    responseHeaders: setCookieHeader,
    errors: ['unauthorized', 'rate_limited'],
    handler: async ({ body, request, reply }) =>
      sendSession(reply, await signIn.signInOwner(body.secret.trim(), readClient(request))),
  }),
  routeWithoutCredential({
    id: 'signIn.createOwnerLink',
    method: 'POST',
    path: '/sign-in/owner/link',
    summary: 'Create a link that signs in the owner',
    description:
      'For programs that can read the file sign-in.key of the data directory, such as `box open`. The link signs in once, within 15 minutes, and until the coordinator stops. The last 20 links are valid.',
    request: { body: createLinkRequestSchema },
    responses: { 201: signInLinkSchema },
    errors: ['unauthorized', 'rate_limited'],
    async handler({ body, request, reply }) {
      reply.header('cache-control', 'no-store')
      const { secret, expiresAt } = await signIn.createLink(body.secret.trim(), readClient(request))
      return { secret, expiresAt: toTimestamp(expiresAt) }
    },
  }),
]

const sessionParams = z.object({
  id: z
    .string()
    .refine((id) => isId('session', id))
    .meta({ description: 'the id of a session' }),
})

export type SessionRoutesOptions = { sessions: Sessions; billing: CurrentSession['billing'] }

export const sessionRoutes = ({ sessions: { service, profile }, billing }: SessionRoutesOptions): Route[] => [
  route({
    id: 'session.get',
    method: 'GET',
    path: '/session',
    summary: 'Get the current session',
    description: 'Returns the session, its user and workspace, and the workspaces to which it can switch.',
    access: bySession(),
    responses: { 200: currentSessionSchema },
    handler: async ({ actor }) => ({ ...(await service.load(actor)), billing }),
  }),
  route({
    id: 'session.signOut',
    method: 'DELETE',
    path: '/session',
    summary: 'Sign out',
    description: 'Ends the current session and deletes its cookie.',
    access: bySession(),
    responses: { 204: null },
    responseHeaders: setCookieHeader,
    async handler({ actor, reply }) {
      await service.end(actor, actor.credential.id)
      reply.header('set-cookie', EXPIRED_SESSION_COOKIE)
    },
  }),
  route({
    id: 'session.switchWorkspace',
    method: 'POST',
    path: '/session/workspace',
    summary: 'Switch to another workspace',
    description:
      'Replaces the session by one in another workspace of the same person. The current cookie is not valid any more; the response sets a new one.',
    access: bySession(),
    request: { body: switchWorkspaceRequestSchema },
    responses: { 200: signedInSchema },
    responseHeaders: setCookieHeader,
    errors: ['not_found'],
    handler: async ({ actor, body, reply }) =>
      sendSession(reply, await service.switchWorkspace(actor, body.workspaceId)),
  }),
  route({
    id: 'session.updateUser',
    method: 'PATCH',
    path: '/session/user',
    summary: 'Change your name',
    access: bySession(),
    request: { body: updateUserRequestSchema },
    responses: { 200: userResponseSchema },
    handler: async ({ actor, body }) => ({ user: await profile.rename(actor, body.name) }),
  }),
  route({
    id: 'session.sendEmailCode',
    method: 'POST',
    path: '/session/email',
    summary: 'Send a code to your new email address',
    description: `For owners, and for this workspace: other workspaces keep the earlier address. The address changes when the code is confirmed. ${CODE_LIMITS}`,
    access: bySession('owner'),
    request: { body: changeEmailRequestSchema },
    responses: { 202: issuedCodeSchema },
    errors: ['rate_limited'],
    handler: ({ actor, body }) => profile.requestEmail(actor, body.email),
  }),
  route({
    id: 'session.changeEmail',
    method: 'POST',
    path: '/session/email/confirm',
    summary: 'Change your email address',
    description: 'The earlier address gets a notification.',
    access: bySession('owner'),
    request: { body: confirmCodeRequestSchema },
    responses: { 200: userResponseSchema },
    errors: ['invalid_code', 'member_exists', 'rate_limited'],
    handler: async ({ actor, body }) => ({ user: await profile.confirmEmail(actor, body) }),
  }),
  route({
    id: 'sessions.list',
    method: 'GET',
    path: '/sessions',
    summary: 'List your sessions',
    description: 'Returns the sessions of the user in this workspace.',
    access: bySession(),
    responses: { 200: sessionListSchema },
    handler: async ({ actor }) => ({ sessions: await service.list(actor) }),
  }),
  route({
    id: 'sessions.delete',
    method: 'DELETE',
    path: '/sessions/:id',
    summary: 'End one of your sessions',
    access: bySession(),
    request: { params: sessionParams },
    responses: { 204: null },
    handler: async ({ actor, params }) => service.end(actor, params.id),
  }),
]
