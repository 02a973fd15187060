// Issues identity tokens: JWTs that a cloud exchanges for credentials of its own.
import { SignJWT } from 'jose'
import type { FederationDocuments } from '../../../shared/api/federation.ts'
import type { Clock } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import { newUuid } from '../../../shared/ids.ts'
import { SecretValue } from '../../base/sealing/secret-value.ts'
import { createDocuments } from './documents.ts'
import { TOKEN_MS } from './plan-rotation.ts'
import { ALGORITHM, type SigningKeys } from './signing-keys.ts'

export type IdentityToken = {
  content: SecretValue
  /** In milliseconds since the epoch. */
  issuedAt: number
  expiresAt: number
}

export type Subject =
  | { workspaceId: string; boxId: string }
  /** Only verifies that a role can be assumed. */
  | { workspaceId: string; use: 'verify' }

export interface Issuer {
  /** null: this deployment has no issuer. */
  readonly url: string | null
  /** @throws ApiError aws_federation_disabled without an issuer */
  issue(subject: Subject, audience: string): Promise<IdentityToken>
  /** @throws ApiError aws_federation_disabled without an issuer */
  getDocuments(): Promise<FederationDocuments>
}

/** Trust policies use it as a pattern: the subjects of one workspace. */
export const getSubjectPattern = (workspaceId: string): string => `workspace:${workspaceId}:*`

const formatSubject = (subject: Subject): string =>
  'boxId' in subject
    ? `workspace:${subject.workspaceId}:box:${subject.boxId}`
    : `workspace:${subject.workspaceId}:verify`

export function createIssuer(options: { url: string | null; keys: SigningKeys; clock: Clock }): Issuer {
  const { url, keys, clock } = options

  function requireUrl(): string {
    if (url === null) throw new ApiError('aws_federation_disabled')
    return url
  }

  return {
    url,
    async issue(subject, audience) {
      const issuer = requireUrl()
      const { id, key } = await keys.getActive()
      const seconds = Math.floor(clock.now() / 1000)
      const claims = {
        workspace_id: subject.workspaceId,
        ...('boxId' in subject && { box_id: subject.boxId }),
      }
      const content = await new SignJWT(claims)
        .setProtectedHeader({ alg: ALGORITHM, kid: id, typ: 'JWT' })
        .setIssuer(issuer)
        .setSubject(formatSubject(subject))
        .setAudience(audience)
        .setJti(newUuid())
        .setIssuedAt(seconds)
        .setNotBefore(seconds)
        .setExpirationTime(seconds + TOKEN_MS / 1000)
        .sign(key)
      const issuedAt = seconds * 1000
      return { content: new SecretValue(content), issuedAt, expiresAt: issuedAt + TOKEN_MS }
    },
    getDocuments: async () => createDocuments(requireUrl(), await keys.listPublic()),
  }
}
