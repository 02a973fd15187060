// What the pages for viewers on the main origin share: the user of the dashboard session, and the links that the user sees.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ApiError } from '../../../../shared/errors.ts'
import type { BoxRow } from '../../../db/schema.ts'
import type { Actor } from '../../../http/actor.ts'
import { type CredentialFinders, readSessionCookie } from '../../../http/auth.ts'
import { hashSecret } from '../../../http/hash-secret.ts'
import { canSee } from '../../../http/visibility.ts'
import type { PortShares, ServedShare } from '../../../port-shares/types.ts'
import { type Page, sendPage } from '../pages/page.ts'
import { NO_SUCH_LINK } from '../pages/pages.ts'
import { isNavigation } from './request-source.ts'

export type MainOriginOptions = {
  finders: Pick<CredentialFinders, 'findSession'>
  portShares: Pick<PortShares, 'base' | 'find'>
  /** The URL of the coordinator, without a slash at its end. */
  publicUrl: string
}

/** Each response depends on the session. The pages are never in a frame: another page could not see which links exist. */
export const MAIN_ORIGIN_HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

/** @throws ApiError not_allowed for the request of a script, a frame or a preview */
export function assertNavigation({ method, headers }: FastifyRequest): void {
  if (isNavigation({ method, headers, isUpgrade: false })) return
  throw new ApiError('not_allowed', 'Only a browser can open this page. Open the link of the port in one.')
}

/** The path that a proxy adds to those of the coordinator. */
export const getAddedPath = (publicUrl: string): string => new URL(publicUrl).pathname.replace(/\/$/, '')

/** undefined: the request has no session, or one that has ended. */
export async function findSessionUser(
  { headers }: FastifyRequest,
  { finders }: Pick<MainOriginOptions, 'finders'>,
): Promise<Actor | undefined> {
  const token = readSessionCookie(headers)
  const found = token ? await finders.findSession(hashSecret(token)) : undefined
  return found !== undefined && 'actor' in found ? found.actor : undefined
}

/** undefined: the user does not see a link for members with this slug. */
export async function findMembersShare(
  actor: Actor,
  slug: string,
  { portShares }: Pick<MainOriginOptions, 'portShares'>,
): Promise<{ share: ServedShare; box: BoxRow } | undefined> {
  const found = await portShares.find(slug)
  if (found?.share.access !== 'members') return undefined
  const { workspace_id: workspaceId, id: boxId, owner_user_id: ownerUserId } = found.box
  return canSee(actor, { workspaceId, boxId, ownerUserId }) ? found : undefined
}

/** Sends the user to the sign-in, which continues at this path. @param path of the coordinator, with its query */
export function redirectToSignIn(
  reply: FastifyReply,
  path: string,
  { publicUrl }: Pick<MainOriginOptions, 'publicUrl'>,
): FastifyReply {
  const addedPath = getAddedPath(publicUrl)
  return reply.redirect(`${addedPath}/sign-in?${new URLSearchParams({ next: addedPath + path })}`, 302)
}

/** What the pages of the main origin have stored stays. */
export function sendMainPage({ raw }: FastifyRequest, reply: FastifyReply, page: Page): FastifyReply {
  reply.hijack()
  sendPage(raw, reply.raw, { ...page, clearsSite: false })
  return reply
}

/** The same for a link that does not exist and one that the user does not see. */
export const sendNoSuchLink = (request: FastifyRequest, reply: FastifyReply): FastifyReply =>
  sendMainPage(request, reply, NO_SUCH_LINK)
